package e2e

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/opmeter/opmeter/internal/testing/material"
)

// dropFile drops a file of the disk on the page.
func (s *session) dropFile(name, file string) {
	s.t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	var bytes strings.Builder
	for _, c := range b {
		bytes.WriteString("\\x" + string("0123456789abcdef"[c>>4]) + string("0123456789abcdef"[c&15]))
	}
	eval[any](s, `(() => {
		const data = new DataTransfer();
		data.items.add(new File([Uint8Array.from("`+bytes.String()+`", (c) => c.charCodeAt(0))], `+quote(name)+`));
		for (const type of ["dragenter", "dragover", "drop"]) document.querySelector("main").dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
		return null;
	})()`)
}

// built is a small model in a file.
func built(t *testing.T) string {
	t.Helper()
	dir, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "autoencoder.tflite")
	c := exec.Command(filepath.Join(dir, "opmeter"), "build", filepath.Join(material.Root(), "examples", "autoencoder.yaml"), "-o", file)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return file
}

// samples is a text of n samples with values from 0 to 1, a line each.
func samples(n, values int) string {
	var b strings.Builder
	for i := range n {
		for k := range values {
			if k > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "%.3f", float64((i*31+k*17)%100)/100)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// attach chooses a file with a text for a field.
func (s *session) attach(name, file, text string) {
	s.t.Helper()
	eval[any](s, `(() => { const i = document.querySelector("main input[type=file][name=`+name+`]"), d = new DataTransfer();
		d.items.add(new File([`+quote(text)+`], `+quote(file)+`)); i.files = d.files; i.dispatchEvent(new Event("change", { bubbles: true })); return null; })()`)
}

// predicted is the number of a figure by the start of its title, NaN if it is unknown.
const predicted = `((title) => Number.parseFloat([...document.querySelectorAll("section[aria-label='What changes of layers give'] dl div")].find((d) => d.querySelector("dt").innerText.startsWith(title))?.querySelector("dd").innerText))`

// TestServerStudy studies the compression of a model, moves sliders, writes the compressed model
// and measures it. The study opens again where it is dropped on another server.
func TestServerStudy(t *testing.T) {
	v := serve(t)
	s := v.open("/", 1400, "")
	s.wait(settingsShown)
	eval[any](s, `(() => { const k = document.querySelector("main form select"); k.value = "compress"; k.dispatchEvent(new Event("change", { bubbles: true })); return null; })()`)
	s.wait(`document.querySelector("main input[name=speedup]") && !document.querySelector("main input[name=runs]") && !document.querySelector("main input[value=board]")`)
	eval[any](s, `(document.querySelector("main details").open = true, null)`)
	for name, text := range map[string]string{"time": "5ms", "structure": "unstructured,filter", "precision": "int8", "levels": "0.5,0.9"} {
		s.fill(name, text)
	}
	s.dropFile("autoencoder.tflite", built(t))
	sliders := `document.querySelectorAll("main tbody input[type=range]").length > 3`
	s.wait(`location.pathname.startsWith("/runs/") && ` + framed + ` && ` + sliders)
	run := eval[string](s, "location.pathname")

	// At first, the page shows what the plan predicts, and says which layers stay as they are.
	if got := eval[string](s, `fetch("/runs/" + location.pathname.split("/")[2] + "/report?as=.json").then((r) => r.json()).then((s) => s.plans.at(-1).predicted.speedup).then((m) => (m.median ?? m.mean ?? m.min).toFixed(2))`); got != eval[string](s, predicted+`("Speed-up, predicted").toFixed(2)`) {
		t.Errorf("the plan predicts a speed-up of %s, the page shows %s", got, eval[string](s, predicted+`("Speed-up, predicted").toFixed(2)`))
	}
	if got := eval[string](s, `document.querySelector("main .whole .left")?.innerText ?? ""`); !strings.Contains(got, "as plans do") || !strings.Contains(got, "the first layer is not changed") {
		t.Errorf("of layers that stay it says %q", got)
	}

	// The effect of a slider is there at once, and follows the curves.
	click := func(text string) {
		t.Helper()
		s.must(s.Do(chromedp.Click(`//main//button[contains(., "` + text + `")]`)))
	}
	if eval[bool](s, `[...document.querySelectorAll("main button")].some((b) => b.innerText === "Unchanged" && !b.disabled)`) {
		click("Unchanged")
	}
	s.wait(predicted + `("Speed-up, predicted") === 1`)
	choose := func(selector, value string) {
		t.Helper()
		eval[any](s, `(() => { const e = document.querySelector(`+quote(selector)+`); e.value = `+quote(value)+`;
			for (const type of ["input", "change"]) e.dispatchEvent(new Event(type, { bubbles: true })); return null; })()`)
	}
	lacks := `document.querySelector("main .lacks").innerText`
	s.wait(lacks + `.includes("change a layer first")`)
	choose("main .whole select", "filter")
	choose("main input[name=whole]", "50")
	s.wait(predicted + `("Speed-up, predicted") > 1`)
	s.wait(`!` + lacks + `.includes("change a layer first") && ` + lacks + `.includes("Write the model of these sliders first")`)
	half := eval[float64](s, predicted+`("Weights")`)
	choose("main input[name=whole]", "70") // between levels that were measured
	s.wait(predicted + `("Speed-up, predicted") > 1 && ` + predicted + `("Weights") < ` + strconv.FormatFloat(half, 'g', -1, 64))
	choose("main .whole select", "unstructured")
	choose("main input[name=whole]", "50")
	choose("main select[name=format]", "int8") // not measured together
	s.wait(`document.querySelector("main .warning[role=status]")?.innerText.includes("was not measured")`)
	// By keyboard: a step of the slider of one layer.
	click("Unchanged")
	choose("main .whole select", "filter")
	s.must(s.Do(chromedp.Focus(`main tbody input[type=range]`)))
	for range 3 {
		s.must(s.Press(kb.ArrowRight))
	}
	s.wait(`document.querySelector("main tbody output").innerText === "3 %"`)
	choose("main input[name=whole]", "50")
	for _, fault := range s.audit() {
		t.Error("sliders: " + fault)
	}
	click("Write the compressed model")
	s.wait(`location.pathname.startsWith("/runs/") && location.pathname !== ` + quote(run) + ` && document.querySelector("main a[href$='/model']") && ` + sliders)
	written := eval[string](s, "location.pathname")
	if size := eval[int](s, `fetch(location.pathname + "/model").then((r) => r.arrayBuffer()).then((b) => b.byteLength)`); size == 0 {
		t.Error("the compressed model is empty")
	}
	click("Benchmark before and after")
	s.wait(`location.pathname.startsWith("/runs/") && location.pathname !== ` + quote(written) + ` && ` + predicted + `("Speed-up of the plan, measured") > 0`)
	benched := eval[string](s, "location.pathname")
	v.look("study", benched, framed+` && `+sliders)

	// With data, the loss is one. Labels alone are refused.
	ranks := `document.querySelector("section[aria-label='What changes of layers give'] .warning")?.innerText.includes("only ranks")`
	if !eval[bool](s, ranks+` && document.querySelector("form[aria-label='Study with data'] button[type=submit]").disabled`) {
		t.Error("a study without data does not ask for some")
	}
	s.attach("labels", "y.csv", "1\n2\n")
	s.attach("data", "x.csv", samples(16, 640))
	s.wait(`[...document.querySelectorAll("main button")].some((b) => b.innerText === "Leave out y.csv")`)
	click("Leave out y.csv")
	s.wait(`document.activeElement.name === "labels" && document.activeElement.files.length === 0`)
	for _, fault := range s.audit() {
		t.Error("data: " + fault)
	}
	s.picture("server-study-data")
	click("Study with this data")
	s.wait(`location.pathname.startsWith("/runs/") && location.pathname !== ` + quote(benched) + ` && ` + sliders + ` && !(` + ranks + `)`)
	v.look("study-data", eval[string](s, "location.pathname"), framed+` && `+sliders)
	s.must(s.Do(chromedp.Click(`nav a[href="/"]`)))
	s.wait(`document.querySelector("main input[type=file][name=labels]") && document.querySelector("main form").innerText.includes("only ranks the layers")`)
	s.attach("labels", "y.csv", strings.Repeat("1\n", 16))
	s.wait(`document.querySelector("main form [role=status]")?.innerText.includes("Labels need data")`)
	s.attach("data", "x.csv", samples(16, 640))
	s.wait(`!document.querySelector("main form [role=status]")`)
	s.picture("server-start-data")
	s.dropFile("autoencoder.tflite", built(t))
	s.wait(`location.pathname.startsWith("/jobs/") || location.pathname.startsWith("/runs/")`)
	if got := eval[string](s, `fetch("/api/v1/jobs?limit=1").then((r) => r.json()).then((l) => l.items[0].inputs.map((i) => i.as + " " + i.name).join())`); got != "model autoencoder.tflite,data x.csv,labels y.csv" {
		t.Errorf("the job has the files %s", got)
	}

	// A report in a format of studies, then the study without its model on another server.
	s.must(s.Do(chromedp.Click(`nav a[href="/runs"]`)))
	s.wait(`document.querySelectorAll("main tbody tr").length >= 4`)
	study := filepath.Join(t.TempDir(), "autoencoder.study")
	text := eval[string](s, `fetch(`+quote(benched+"/profile")+`).then((r) => r.text())`)
	if err := os.WriteFile(study, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w := serve(t)
	s2 := w.open("/", 1400, "")
	s2.wait(settingsShown)
	s2.dropFile("autoencoder.study", study)
	s2.wait(`location.pathname.startsWith("/runs/") && ` + framed + ` && ` + sliders + ` && document.querySelector("main input[type=file]")`)
}

// TestServerWorkers lists the worker of the server, and says what none has.
func TestServerWorkers(t *testing.T) {
	v := serve(t)
	s := v.open("/workers", 1400, "")
	s.wait(`document.querySelector("main tbody .chip")?.innerText === "Idle" && document.querySelector("main tbody").innerText.includes("opmeter")`)
	eval[any](s, `document.querySelector('nav a[href="/"]').click()`)
	s.wait(settingsShown)
	s.measuredOn("board")
	s.wait(`document.querySelector("main form").innerText.includes("Name the board")`)
	s.fill("board", "nrf5340dk")
	s.drop([]string{"resnet8.yaml"}, network(t, "resnet8.yaml"))
	s.wait(`location.pathname.startsWith("/jobs/") && document.querySelector("main .warning")?.innerText.includes('no worker has the board "nrf5340dk"')`)
	waiting := eval[string](s, "location.pathname")
	v.look("workers", "/workers", `document.querySelector("main tbody .chip")`)
	v.look("lacking", waiting, `document.querySelector("main .warning")`)

	// Of many jobs that wait, more are shown on demand.
	text := []byte(network(t, "resnet8.yaml"))
	hash := sha256.Sum256(text)
	for range 34 {
		v.request(http.MethodPost, "api/v1/jobs", "application/json", fmt.Appendf(nil, `{"project":"p","kind":"profile","inputs":[{"name":"resnet8.yaml","hash":"%x"}],"options":{"on":"device:nrf5340dk"}}`, hash))
	}
	s.must(s.Do(chromedp.Click(`nav a[href="/"]`)))
	s.wait(`document.querySelectorAll("main tbody tr").length === 30`)
	s.must(s.Do(chromedp.Click(`//main//button[contains(., "Show more")]`)))
	s.wait(`document.querySelectorAll("main tbody tr").length === 35 && ![...document.querySelectorAll("main button")].some((b) => b.innerText === "Show more")`)
}

// TestServerMatrix starts a pair of model and target that is missing, and moves by keys.
func TestServerMatrix(t *testing.T) {
	v := serve(t)
	s := v.open("/", 1400, "")
	s.wait(settingsShown)
	s.measuredOn("chip")
	s.fill("chip", "stm32h743")
	s.profiled("resnet8.yaml")
	eval[any](s, `document.querySelector('nav a[href="/"]').click()`)
	s.wait(settingsShown)
	s.fill("chip", "nrf52840")
	s.profiled("ds_cnn.yaml")
	eval[any](s, `document.querySelector('nav a[href="/"]').click()`)
	s.wait(settingsShown)
	eval[any](s, `(document.querySelector("main details").open = true, null)`)
	s.fill("batch", "2")
	s.profiled("ds_cnn.yaml")
	eval[any](s, `document.querySelector('nav a[href="/projects"]').click()`)
	s.wait(`document.querySelector("main li a")`)
	s.must(s.Do(chromedp.Click(`main li a`)))
	cell := func(row, column string) string {
		return `document.querySelector('main td[data-row="` + row + `"][data-column="` + column + `"]')`
	}
	// Rows ds_cnn and resnet8, columns nrf52840 and stm32h743: two pairs are missing.
	s.wait(`document.querySelectorAll("main td button.absent").length === 2 && ` + cell("0", "1") + `.innerText === "Estimate"`)
	project := eval[string](s, "location.pathname")
	v.look("matrix", project, `document.querySelectorAll("main td button.absent").length === 2`)
	eval[any](s, cell("0", "0")+`.querySelector("button").focus()`)
	s.must(s.Press(kb.ArrowRight + kb.Enter))
	s.wait(cell("0", "1") + `.querySelector("button[aria-pressed]") && document.querySelectorAll("main .best").length === 1`)
	// Two inferences at once take longer than one: that figure competes with none.
	if got := eval[string](s, cell("0", "0")+`.innerText`); !strings.Contains(got, "batch=2") {
		t.Errorf("the cell of two settings reads %q", got)
	}
	if eval[bool](s, `[...document.querySelectorAll("main .cell")].some((c) => c.innerText.includes("batch=2") && c.querySelector(".best"))`) {
		t.Error("a figure of another batch is the best")
	}
	s.must(s.Do(chromedp.Click(`main input[list=matrix-targets]`)))
	s.must(s.Press("esp32" + kb.Enter))
	s.wait(`document.querySelectorAll("main td button.absent").length === 3 && location.search.includes("targets=esp32")`)
	for _, fault := range s.audit() {
		t.Error(fault)
	}
}
