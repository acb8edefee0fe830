package e2e

import (
	"bufio"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/web/e2e/browser"
)

// programs builds the server and what it starts. It returns their folder.
var programs = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(folder, "programs")
	c := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "./cmd/opmeter", "./cmd/opmeter-server")
	c.Dir = material.Root()
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return dir, nil
})

// service is a running server.
type service struct {
	t    *testing.T
	data string
	url  string // with a slash at the end
	run  *exec.Cmd
}

// serve starts a server with an empty folder.
func serve(t *testing.T) *service {
	t.Helper()
	if _, err := browser.Path(); err != nil {
		material.Skip(t, "Chromium is absent: "+err.Error())
	}
	v := &service{t: t, data: t.TempDir()}
	v.start("127.0.0.1:0")
	t.Cleanup(v.stop)
	return v
}

func (v *service) start(listen string, more ...string) {
	v.t.Helper()
	dir, err := programs()
	if err != nil {
		v.t.Fatal(err)
	}
	args := append([]string{"serve", "-opmeter", filepath.Join(dir, "opmeter"), "-data", v.data, "-listen", listen}, more...)
	v.run = exec.Command(filepath.Join(dir, "opmeter-server"), args...)
	v.run.Stderr = os.Stderr
	out, err := v.run.StdoutPipe()
	if err == nil {
		err = v.run.Start()
	}
	if err != nil {
		v.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if u, ok := strings.CutPrefix(lines.Text(), "url "); ok {
			v.url = u
			return
		}
	}
	v.t.Fatal("the server ended before it was ready")
}

func (v *service) stop() {
	if v.run == nil {
		return
	}
	_ = v.run.Process.Signal(os.Interrupt) // it may have ended
	_ = v.run.Wait()                       // killed by the signal or not
	v.run = nil
}

// open opens a view. Complaints of the browser that contain expected do not fail the test.
func (v *service) open(path string, width int, expected string) *session {
	v.t.Helper()
	s := openURL(v.t, v.url+strings.TrimPrefix(path, "/"), "", width, 900, func(u *url.URL) bool { return strings.HasPrefix(u.String(), v.url) }, expected)
	s.wait(`document.querySelector("main h1")`)
	return s
}

// drop drops files with a text on the page.
func (s *session) drop(names []string, text string) {
	s.t.Helper()
	eval[any](s, `(() => {
		const data = new DataTransfer();
		for (const name of `+quote(strings.Join(names, "|"))+`.split("|")) data.items.add(new File([`+quote(text)+`], name));
		for (const type of ["dragenter", "dragover", "drop"]) document.querySelector("main").dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
		return null;
	})()`)
}

// network is the text of an example, which is profiled like a model.
func network(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(material.Root(), "examples", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// framed is true when the page of a profile is shown.
const framed = `document.querySelector("main iframe:not(.hidden)")`

// profiled drops a network and waits for its run. It returns the path of the run.
func (s *session) profiled(name string) string {
	s.t.Helper()
	s.drop([]string{name}, network(s.t, name))
	s.wait(`location.pathname.startsWith("/runs/") && ` + framed)
	return eval[string](s, "location.pathname")
}

// settingsShown is true when the settings of the next job are shown.
const settingsShown = `document.querySelector("main input[name=place]") && document.querySelector("main .options input")`

// measuredOn chooses where the next job measures.
func (s *session) measuredOn(place string) {
	s.t.Helper()
	s.must(s.Do(chromedp.Click(`main input[name=place][value=` + place + `]`)))
}

// fill writes into a field of the settings.
func (s *session) fill(name, text string) {
	s.t.Helper()
	s.wait(`document.querySelector("main input[name=` + name + `]")`)
	eval[any](s, `(() => { const i = document.querySelector("main input[name=`+name+`]"); i.value = `+quote(text)+`;
		i.dispatchEvent(new Event("input", { bubbles: true })); i.dispatchEvent(new Event("change", { bubbles: true })); return null; })()`)
}

// look checks a view in both themes and widths: accessible, not too wide.
func (v *service) look(name, path, ready string) {
	v.t.Helper()
	v.lookAt(name, path, ready, "")
}

// lookAt is [service.look] for a view about which the browser complains.
func (v *service) lookAt(name, path, ready, expected string) {
	v.t.Helper()
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int{1400, 500} {
			s := v.open(path, width, expected)
			s.must(s.Media("screen", theme))
			s.wait(ready)
			for _, fault := range s.audit() {
				v.t.Errorf("%s, %s, %d: %s", name, theme, width, fault)
			}
			if got := eval[int](s, `document.scrollingElement.scrollWidth`); got > width {
				v.t.Errorf("%s: the page is %d pixels wide, more than %d: %q", name, got, width, s.wide())
			}
			s.picture(fmt.Sprintf("server-%s-%s-%d", name, theme, width))
			s.Close()
		}
	}
}

// TestServer drops models and does with their runs what the page offers.
func TestServer(t *testing.T) {
	v := serve(t)
	empty := `document.querySelector("main .empty")`
	for name, path := range map[string]string{"start": "/", "runs": "/runs", "bin": "/runs?bin=1", "compare": "/compare", "projects": "/projects"} {
		v.look("empty-"+name, path, empty)
	}
	v.look("absent", "/nothing", `document.querySelector("main").innerText.includes("Nothing is at this address")`)
	v.lookAt("no-job", "/jobs/1a2b", `document.querySelector("main .error")`, "404")

	s := v.open("/", 1400, "")
	first := s.profiled("resnet8.yaml")
	if got := eval[string](s, `document.querySelector("main h1").innerText`); got != "resnet8" {
		t.Errorf("the run is called %q", got)
	}
	if got := eval[string](s, `document.querySelector("main dl").innerText`); !strings.Contains(got, "12.5 M") {
		t.Errorf("the figures are %q, want 12.5 M MACs among them", got)
	}

	// Note and tags by keyboard.
	s.must(s.Do(chromedp.Click(`//main//button[contains(., "Add a note or tags")]`)))
	s.wait(`document.activeElement.matches(".edit input")`)
	s.must(s.Press("nightly, <b>bold</b>" + kb.Tab + "before the change" + kb.Tab + kb.Enter))
	s.wait(`document.querySelectorAll("main a.chip").length === 2 && document.querySelector(".note").innerText === "before the change"`)

	// A second model, dropped on another view; the comparison of both.
	second := s.profiled("ds_cnn.yaml")
	if second == first {
		t.Fatal("the second run is the first")
	}
	s.must(s.Do(chromedp.Click(`//main//button[contains(., "Compare with")]`)))
	s.wait(`document.querySelector("dialog[open]")`)
	s.must(s.Do(chromedp.Click(`dialog input[type=search]`)))
	s.must(s.Press("nightly" + kb.Enter))
	s.wait(`document.querySelector("dialog[open] li a")?.innerText === "resnet8"`)
	s.must(s.Do(chromedp.Click(`dialog[open] li a`)))
	s.wait(`location.pathname === "/compare" && ` + framed)
	comparison := eval[string](s, "location.pathname + location.search")
	if got := eval[int](s, `document.querySelectorAll("main ol a").length`); got != 2 {
		t.Errorf("the comparison has links to %d runs, want 2", got)
	}

	// Delete and undo.
	s.must(s.Do(chromedp.Click(`main ol a`)))
	s.wait(`location.pathname === ` + quote(first) + ` && ` + framed)
	s.must(s.Do(chromedp.Click(`//main//button[contains(., "Delete")]`)))
	s.wait(`location.pathname === "/runs" && document.querySelectorAll("main tbody tr").length === 1`)
	s.must(s.Do(chromedp.Click(`//div[contains(@class, "toast")]//button[contains(., "Undo")]`)))
	s.wait(`location.pathname === ` + quote(first) + ` && document.querySelector("main h1")?.innerText === "resnet8"`)

	// Select two runs, and search.
	eval[any](s, `document.querySelector('nav a[href="/runs"]').click()`)
	s.wait(`document.querySelectorAll("main tbody tr").length === 2`)
	eval[any](s, `document.querySelectorAll("main tbody input").forEach((c) => c.click())`)
	s.wait(`document.querySelector("main a.button.primary")?.getAttribute("href").startsWith("/compare?runs=")`)
	s.must(s.Do(chromedp.Click(`main input[type=search]`)))
	s.must(s.Press("ds"))
	s.wait(`location.search === "?search=ds" && document.querySelectorAll("main tbody tr").length === 1`)

	// An estimate for a chip. What the server would refuse is told before a file is sent.
	eval[any](s, `document.querySelector('nav a[href="/"]').click()`)
	s.wait(settingsShown)
	s.measuredOn("chip")
	s.fill("chip", "stm32h743")
	s.profiled("resnet8.yaml")
	eval[any](s, `document.querySelector('nav a[href="/"]').click()`)
	s.wait(`document.querySelector("main input[name=chip]")?.value === "stm32h743"`)
	refused := func(name, value, place, file string) {
		t.Helper()
		s.fill(name, value)
		s.wait(`document.querySelector("main input[name=` + name + `][aria-invalid]") && document.querySelector("main .wrong").innerText.includes(` + quote(place) + `)`)
		s.drop([]string{"resnet8.yaml"}, network(t, "resnet8.yaml"))
		s.wait(`document.querySelector(".files .error")?.innerText.includes(` + quote(file) + `)`)
		if got := eval[int](s, `performance.getEntriesByType("resource").filter((e) => e.name.includes("/api/v1/files/") || e.name.endsWith("/api/v1/jobs")).length`); got != 0 {
			t.Errorf("%s %s: %d requests for a job that is refused", name, value, got)
		}
		for _, fault := range s.audit() {
			t.Errorf("%s: %s", name, fault)
		}
		s.must(s.Do(chromedp.Click(`//main//ul[contains(@class, "files")]//button[contains(., "Remove")]`)))
		s.wait(`!document.querySelector("main .files")`)
		s.fill(name, "")
	}
	eval[any](s, `(performance.clearResourceTimings(), null)`)
	refused("chip", "stm32h74", "Did you mean stm32h743", "No chip is called stm32h74")
	s.fill("chip", "stm32h743")
	eval[any](s, `(document.querySelector("main details").open = true, null)`)
	refused("batch", "abc", "Expected a number from 1 to 1048576", "Batch abc: expected a number")
	s.measuredOn("computer")
	refused("threads", "0", "Expected a number from 1 to 1024", "Threads 0: expected a number")
	s.picture("server-refused")

	// A job that fails says why.
	s.drop([]string{"broken.yaml"}, "nonsense")
	s.wait(`location.pathname.startsWith("/jobs/") && document.querySelector("main .error")?.innerText.includes("broken.yaml")`)
	failed := eval[string](s, "location.pathname")

	// A long job shows its progress, also after a reload, and can be cancelled.
	eval[any](s, `document.querySelector('nav a[href="/"]').click()`)
	s.wait(settingsShown)
	s.measuredOn("computer")
	eval[any](s, `(document.querySelector("main details").open = true, null)`)
	s.fill("time", "5m")
	s.drop([]string{"resnet8.yaml"}, network(t, "resnet8.yaml"))
	progress := `location.pathname.startsWith("/jobs/") && document.querySelector("main progress")?.value > 0`
	s.wait(progress)
	s.must(s.Reload())
	s.wait(progress)
	for _, fault := range s.audit() {
		t.Error("job: " + fault)
	}
	s.picture("server-job")
	s.must(s.Do(chromedp.Click(`//main//button[contains(., "Cancel")]`)))
	s.wait(`document.querySelector("main").innerText.includes("The job was cancelled")`)

	// A record waits for a model; an empty file is refused.
	eval[any](s, `document.querySelector('nav a[href="/"]').click()`)
	s.wait(settingsShown)
	s.drop([]string{"trace.json", "empty.onnx"}, "")
	s.wait(`document.querySelector(".files .error")?.innerText.includes("is empty") && document.querySelector(".files").innerText.includes("Add its model")`)
	for _, fault := range s.audit() {
		t.Error("files: " + fault)
	}
	s.picture("server-files")

	// The trend of a project leads to runs.
	eval[any](s, `document.querySelector('nav a[href="/projects"]').click()`)
	s.wait(`document.querySelector("main li a")`)
	s.must(s.Do(chromedp.Click(`main li a`)))
	s.wait(`document.querySelector("main svg circle") && document.querySelectorAll("main tbody th").length === 2`)
	project := eval[string](s, "location.pathname")
	s.must(s.Press(kb.Tab))
	eval[any](s, `document.querySelector("main svg a").dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }))`)
	s.wait(`location.pathname.startsWith("/runs/")`)

	// A token.
	eval[any](s, `document.querySelector('nav a[href="/settings"]').click()`)
	s.wait(`document.querySelector("main form.add input")`)
	s.must(s.Do(chromedp.Click(`main form.add input`)))
	s.must(s.Press("build server" + kb.Enter))
	s.wait(`document.querySelector("main .warning code")?.innerText.startsWith("opm_") && document.querySelector("main tbody")?.innerText.includes("build server")`)

	// A rule that keeps the last run of each series: what would go, then what went. The form tells
	// what the server would refuse.
	retention := `document.querySelector("section[aria-labelledby=retention]")`
	last := func(value string) {
		eval[any](s, `(() => { const i = `+retention+`.querySelectorAll("input[type=number]")[1]; i.value = "`+value+`";
			i.dispatchEvent(new Event("input", { bubbles: true })); return null; })()`)
	}
	last("0")
	s.must(s.Do(chromedp.Click(`//section//button[contains(., "Show what would go")]`)))
	if eval[bool](s, retention+`.querySelector("form").checkValidity()`) {
		t.Error("a rule of 0 runs is valid")
	}
	s.wait(`document.activeElement.type === "number"`)
	last("1")
	s.must(s.Do(chromedp.Click(`//section//button[contains(., "Show what would go")]`)))
	s.wait(retention + `.innerText.includes("No run would go")`)
	s.must(s.Do(chromedp.Click(`//section//button[contains(., "Save rule")]`)))
	s.wait(`document.querySelector(".toast")?.innerText.includes("The rule is saved")`)
	s.must(s.Do(chromedp.Click(`//section//button[contains(., "Apply saved rules now")]`)))
	s.wait(`document.querySelector(".toast")?.innerText.includes("0 runs are in the bin")`)

	for name, at := range map[string][2]string{
		"start":    {"/", `document.querySelectorAll("main tbody tr").length >= 3`},
		"run":      {first, framed},
		"runs":     {"/runs", `document.querySelectorAll("main tbody tr").length === 3`},
		"compare":  {comparison, framed},
		"projects": {"/projects", `document.querySelector("main li a")`},
		"project":  {project, `document.querySelector("main svg circle")`},
		"settings": {"/settings", `document.querySelectorAll("main table").length === 2`},
		"failed":   {failed, `document.querySelector("main .error")`},
	} {
		v.look(name, at[0], at[1])
	}
}

// TestServerGone: the page says that the server is gone, and shows its data once it is back.
func TestServerGone(t *testing.T) {
	v := serve(t)
	s := v.open("/runs", 1400, "ERR_CONNECTION_REFUSED")
	s.wait(`document.querySelector("main .empty")`)
	address := strings.TrimSuffix(strings.TrimPrefix(v.url, "http://"), "/")
	v.stop()
	eval[any](s, `document.querySelector('nav a[href="/projects"]').click()`)
	s.wait(`document.querySelector(".connection").innerText.includes("Not connected") && document.querySelector("main h1").innerText === "Projects"`)
	for _, fault := range s.audit() {
		t.Error(fault)
	}
	s.picture("server-gone")
	v.start(address)
	s.wait(`!document.querySelector(".connection").innerText && document.querySelector("main .empty")`)
}

// TestServerSilent: a server that was killed with a job shows no old progress when it is back.
func TestServerSilent(t *testing.T) {
	v := serve(t)
	s := v.open("/", 1400, "ERR_")
	s.wait(settingsShown)
	eval[any](s, `(document.querySelector("main details").open = true, null)`)
	s.fill("time", "5m")
	s.drop([]string{"resnet8.yaml"}, network(t, "resnet8.yaml"))
	s.wait(`location.pathname.startsWith("/jobs/") && document.querySelector("main progress")?.value > 0`)
	job := eval[string](s, "location.pathname")
	address := strings.TrimSuffix(strings.TrimPrefix(v.url, "http://"), "/")
	if err := v.run.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = v.run.Wait() // killed
	v.start(address, "-worker=false")
	silent := `document.querySelector("main .warning[role=status]")?.innerText.startsWith("No sign of life") && !document.querySelector("main progress")`
	s.wait(silent)
	v.look("silent", job, silent)
	v.look("silent-jobs", "/", `document.querySelector("main tbody")?.innerText.includes("Worker silent")`)
}

// TestServerSignIn: a server that needs a token asks for it, by a stand-in for the API.
func TestServerSignIn(t *testing.T) {
	v := serve(t)
	s := v.open("/", 500, "401")
	eval[any](s, `(() => {
		const real = window.fetch;
		let signed = false;
		window.fetch = (url, init) => {
			const answer = (status, body) => Promise.resolve(new Response(JSON.stringify(body), { status }));
			if (String(url).endsWith("/session")) return (signed = JSON.parse(init.body).token === "opm_right") ? answer(200, {}) : answer(401, { detail: "the token is unknown, expired or revoked" });
			return signed ? real(url, init) : answer(401, { detail: "this server needs a token" });
		};
		return null;
	})()`)
	eval[any](s, `document.querySelector('nav a[href="/runs"]').click()`)
	s.wait(`document.querySelector("main input[type=password]")`)
	for _, fault := range s.audit() {
		t.Error(fault)
	}
	s.must(s.Do(chromedp.Click(`main input[type=password]`)))
	s.must(s.Press("opm_wrong" + kb.Enter))
	s.wait(`document.querySelector("main .error")?.innerText.includes("unknown")`)
	s.picture("server-sign-in")
	eval[any](s, `document.querySelector("main input[type=password]").select()`)
	s.must(s.Press("opm_right" + kb.Enter))
	s.wait(`document.querySelector("main .empty")?.innerText.includes("No runs yet")`)
}
