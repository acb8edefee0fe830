package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/opmeter/opmeter/internal/cli"
	"github.com/opmeter/opmeter/internal/mcp"
	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
)

// program names the variable that makes the test binary the program opmeter.
const program = "OPMETER_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if dir := os.Getenv(served); dir != "" && os.Getenv(held) == "" {
		if err := os.Setenv(held, "1"); err != nil {
			panic(err)
		}
		if err := mcp.Serve(context.Background(), os.Stdin, os.Stdout, mcp.Options{Program: os.Args[0], Allow: []string{dir}}); err != nil {
			panic(err)
		}
		return
	}
	if os.Getenv(program) == "" {
		if err := os.Setenv(program, "1"); err != nil {
			panic(err)
		}
		os.Exit(m.Run())
	}
	for _, arg := range os.Args {
		switch filepath.Base(arg) {
		case "hang.onnx": // a model that never ends
			if err := os.WriteFile(arg+".pid", []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
				panic(err)
			}
			fmt.Fprint(os.Stderr, "\r\x1b[Kmeasuring [==      ]  25 %, 3 s left")
			<-make(chan struct{})
		case "held.onnx":
			hold(filepath.Dir(arg))
		case "crash.onnx": // a model that ends the program
			os.Exit(7)
		}
	}
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// Variables of TestKilled: the folder that a server in a process of its own may read, the address
// of the test, and which process this is.
const (
	served  = "OPMETER_TEST_SERVED"
	address = "OPMETER_TEST_ADDRESS"
	held    = "OPMETER_TEST_HELD"
)

// hold measures in a process that the system does not end with the server: a child of the one that
// the server started. It connects to the test, which sees the end of the connection.
func hold(dir string) {
	if os.Getenv(held) == "1" {
		c := exec.Command(os.Args[0], os.Args[1:]...)
		c.Env, c.Stdin, c.Stderr = append(os.Environ(), held+"=2"), os.Stdin, os.Stderr
		_ = c.Run()
		os.Exit(1)
	}
	conn, err := net.Dial("tcp", os.Getenv(address))
	if err != nil {
		panic(err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, conn) // the test has ended
		os.Exit(1)
	}()
	os.Exit(cli.Main([]string{"profile", filepath.Join(dir, "model.yaml"), "--time", "1h"}, os.Stdin, io.Discard, io.Discard))
}

// TestKilled ends a measurement when the server is killed, on every system.
func TestKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	model, err := os.ReadFile(filepath.FromSlash("../../examples/resnet8.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"model.yaml", "held.onnx"} {
		if err := os.WriteFile(filepath.Join(dir, name), model, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), served+"="+dir, address+"="+l.Addr().String())
	client, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: c}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: "profile", Arguments: map[string]any{"model": "held.onnx"}})
		ended <- err
	}()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("a call of a killed server gave an answer")
	}
	if err := conn.SetReadDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the measurement goes on")
	}
}

// bed is a folder with models, and a client of a server that may read it.
type bed struct {
	t        *testing.T
	dir, out string
	client   *sdk.ClientSession
	end      func() error // closes the connection, and waits for the end of the server
	stop     func()       // ends the context of the server
	mu       sync.Mutex
	notes    []string // progress
	noted    chan struct{}
}

// newBed starts a server in the process, and connects a client to it by pipes.
func newBed(t *testing.T, limit time.Duration) *bed {
	t.Helper()
	b := &bed{t: t, dir: t.TempDir(), out: t.TempDir(), noted: make(chan struct{}, 1000)}
	model, err := os.ReadFile(filepath.FromSlash("../../examples/resnet8.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	b.write("model.yaml", model)
	b.write("hang.onnx", nil)
	b.write("crash.onnx", nil)
	b.write("broken.onnx", []byte("\x08\x07\x12\xff\xff\xff\xff"))
	b.write("broken.tflite", append([]byte("\x1c\x00\x00\x00TFL3"), bytes.Repeat([]byte{0xff}, 4096)...))
	b.write("broken.opmeter", []byte("opmeter"))
	b.write("text.txt", []byte("no model"))
	b.write("trace.json", []byte(`{"traceEvents":[{"ph":"X","name":"Conv","ts":0,"dur":10,"pid":1,"tid":1},{"ph":"X","name":"Relu","ts":10,"dur":5,"pid":1,"tid":1}]}`))
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	b.stop = cancel
	done := make(chan error, 1)
	go func() {
		done <- mcp.Serve(ctx, in, out, mcp.Options{Program: os.Args[0], Allow: []string{b.dir}, Write: b.out, Limit: limit})
		_ = out.Close()
	}()
	client := sdk.NewClient(&sdk.Implementation{Name: "test"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			b.mu.Lock()
			b.notes = append(b.notes, r.Params.Message)
			b.mu.Unlock()
			b.noted <- struct{}{}
		},
	})
	b.client, err = client.Connect(ctx, &sdk.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.end = sync.OnceValue(func() error {
		_ = toServer.Close() // first: the client waits for its calls
		_ = b.client.Close()
		err := <-done
		cancel()
		return err
	})
	t.Cleanup(func() {
		if err := b.end(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return b
}

func (b *bed) write(name string, data []byte) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), data, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// call calls a tool. The error is that of the protocol.
func (b *bed) call(ctx context.Context, name string, args any) (*sdk.CallToolResult, error) {
	p := &sdk.CallToolParams{Name: name, Arguments: args}
	p.SetProgressToken("token")
	return b.client.CallTool(ctx, p)
}

// answer calls a tool that must succeed, and decodes what it answers.
func (b *bed) answer(name string, args any) (map[string]any, string) {
	b.t.Helper()
	r, err := b.call(b.t.Context(), name, args)
	if err != nil {
		b.t.Fatalf("%s: %v", name, err)
	}
	text := textOf(r)
	for line := range strings.Lines(text) {
		if strings.Contains(line, " --") && !strings.Contains(line, "terminal") {
			b.t.Errorf("%s %v: an agent cannot give the flag in %q", name, args, line)
		}
	}
	if r.IsError {
		b.t.Fatalf("%s %v: %s", name, args, text)
	}
	raw, err := json.Marshal(r.StructuredContent)
	if err != nil {
		b.t.Fatal(err)
	}
	if len(raw) > 20<<10 || len(text) > 6<<10 {
		b.t.Errorf("%s: %d bytes of answer, %d of text", name, len(raw), len(text))
	}
	if strings.Contains(text, "\x00") || strings.Contains(text, "\x1b") {
		b.t.Errorf("%s: control characters in %q", name, text)
	}
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		b.t.Fatal(err)
	}
	return m, text
}

// refusal calls a tool that must refuse, and returns its line.
func (b *bed) refusal(name string, args any) string {
	b.t.Helper()
	r, err := b.call(b.t.Context(), name, args)
	if err != nil {
		return err.Error()
	}
	text := textOf(r)
	if !r.IsError {
		b.t.Errorf("%s %s was answered: %.300s", name, short(args), text)
	}
	if len(text) > 1300 || strings.ContainsAny(text, "\n\x00\x1b") {
		b.t.Errorf("%s: an error of %d bytes, expected one line: %.300q", name, len(text), text)
	}
	return text
}

func textOf(r *sdk.CallToolResult) string {
	var list []string
	for _, c := range r.Content {
		if t, ok := c.(*sdk.TextContent); ok {
			list = append(list, t.Text)
		}
	}
	return strings.Join(list, "\n")
}

type args = map[string]any

// short is the beginning of arguments.
func short(a any) string { return fmt.Sprintf("%.200s", fmt.Sprint(a)) }

// TestTools calls every tool with arguments that are right.
func TestTools(t *testing.T) {
	t.Parallel()
	b := newBed(t, 0)
	called := map[string]bool{}
	ask := func(name string, a args, want ...string) map[string]any {
		t.Helper()
		called[name] = true
		m, text := b.answer(name, a)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: %q is missing in\n%s", name, w, text)
			}
		}
		return m
	}
	rows := func(m map[string]any) []any {
		list, _ := m["rows"].([]any)
		return list
	}
	total := func(m map[string]any, key string) any {
		f, _ := m["totals"].(map[string]any)[key].(map[string]any)
		return f["value"]
	}

	m := ask("summary", args{"model": "model.yaml"}, "Layers", "16", "profile p1", "#0 CONV_2D")
	if m["profile"] != "p1" || total(m, "macs") != 12501632.0 || len(rows(m)) != 16 {
		t.Errorf("summary: %v, %v MACs, %d rows", m["profile"], total(m, "macs"), len(rows(m)))
	}
	m = ask("summary", args{"model": filepath.Join(b.dir, "model.yaml"), "batch": 2, "save": "two.opmeter"}, "saved as two.opmeter")
	if total(m, "macs") != 2*12501632.0 || m["saved"] != "two.opmeter" {
		t.Errorf("summary of two images: %v MACs, saved as %v", total(m, "macs"), m["saved"])
	}
	if _, err := os.Stat(filepath.Join(b.out, "two.opmeter")); err != nil {
		t.Error(err)
	}
	m = ask("profile", args{"model": "model.yaml", "seconds": 0.05, "threads": 1, "shapes": args{"image": "1x32x32x3"}}, "Latency", "profile p3")
	if v, _ := total(m, "latency_s").(float64); v <= 0 {
		t.Errorf("profile: latency %v", v)
	}
	m = ask("estimate", args{"model": "model.yaml", "target": "stm32l4r5"}, "profile p4", "#")
	if v, _ := total(m, "latency_s").(float64); v < 0.3 || v > 0.5 {
		t.Errorf("estimate: latency %v", v)
	}
	first, _ := rows(m)[0].(map[string]any)
	second, _ := rows(m)[1].(map[string]any)
	share := func(m map[string]any) float64 {
		v, _ := m["figures"].(map[string]any)["share"].(float64)
		return v
	}
	if share(first) < share(second) || share(second) == 0 {
		t.Errorf("estimate: layers are not ordered by time: %v, %v", first, second)
	}
	m = ask("fit", args{"model": "model.yaml", "latency_s": 0.1, "ram_bytes": 1 << 20}, "targets fit for sure", "ra8d1: yes", "more targets: call fit again with offset 20")
	if n, _ := m["fit"].(float64); n < 1 || m["of"].(float64) < 30 {
		t.Errorf("fit: %v of %v", m["fit"], m["of"])
	}
	m = ask("fit", args{"model": "model.yaml", "latency_s": 1e-6}, "0 of")
	if m["fit"] != 0.0 {
		t.Errorf("fit within a microsecond: %v", m["fit"])
	}
	m = ask("import", args{"path": "trace.json"}, "2 layers")
	record, _ := rows(m)[0].(map[string]any)
	if record["layers"] != 2.0 || record["profile"] != "p5" {
		t.Errorf("import: %v", record)
	}
	m = ask("compare", args{"files": []string{"p3", "p4"}, "limit": 3}, "p3", "p4")
	if len(rows(m)) != 3 || m["more"] == nil {
		t.Errorf("compare: %d rows, more %v", len(rows(m)), m["more"])
	}
	m = ask("compare", args{"files": []string{"p1", filepath.Join(b.out, "..", filepath.Base(b.dir), "model.yaml")}, "quantity": "macs", "save": "versus.md"})
	if m["quantity"] != "macs" {
		t.Errorf("compare: quantity %v", m["quantity"])
	}
	m = ask("layers", args{"profile": "p4", "sort": "macs", "limit": 5}, "11 more layers: call layers again with offset 5")
	next, _ := m["more"].(map[string]any)
	m = ask("layers", args{"profile": "p4", "sort": "macs", "limit": 500, "offset": next["offset"]})
	if len(rows(m)) != 11 || m["more"] != nil {
		t.Errorf("layers: %d rows after the first 5", len(rows(m)))
	}
	m = ask("explain_layer", args{"profile": "p4", "layer": 0}, `Layer #0 of 16 is CONV_2D "conv"`, "(estimated)", "Outputs: int8 1x32x32x16", "MACs")
	if m["kernel"] == nil && m["figures"] == nil {
		t.Errorf("explain_layer: %v", m)
	}
	ask("layers", args{"profile": "two.opmeter", "limit": 1}, "16 layers by time") // what was saved
	ask("advise", args{"model": "p4"}, "pieces of advice")
	ask("advise", args{"model": "model.yaml", "target": "stm32l4r5"}, "rules found nothing")

	for tool, err := range b.client.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if !called[tool.Name] {
			t.Errorf("%s was not called", tool.Name)
		}
		delete(called, tool.Name)
		if tool.InputSchema == nil || tool.OutputSchema == nil || tool.Description == "" || tool.Annotations == nil {
			t.Errorf("%s lacks a schema, description or annotations", tool.Name)
		}
	}
	if len(called) > 0 {
		t.Errorf("tools that are not listed: %v", called)
	}
}

// TestBounded asks about profiles with many layers and with names that are hostile.
func TestBounded(t *testing.T) {
	t.Parallel()
	b := newBed(t, 0)
	if err := errors.Join(
		profile.Write(filepath.Join(b.dir, "names.opmeter"), sample.New(sample.Options{})),
		profile.Write(filepath.Join(b.dir, "large.opmeter"), sample.Large(1000, 1, 10)),
	); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"names.opmeter", "large.opmeter"} {
		left, offset, seen := 1.0, 0.0, 0
		for left > 0 {
			m, _ := b.answer("layers", args{"profile": file, "limit": 500, "offset": offset, "sort": "index"})
			rows, _ := m["rows"].([]any)
			for _, row := range rows {
				if row.(map[string]any)["layer"] != float64(seen) {
					t.Fatalf("%s: row %d is %v", file, seen, row)
				}
				seen++
			}
			more, _ := m["more"].(map[string]any)
			left, _ = more["left"].(float64)
			offset, _ = more["offset"].(float64)
		}
		for i := range min(seen, 40) {
			b.answer("explain_layer", args{"profile": file, "layer": i})
		}
		if got := b.refusal("explain_layer", args{"profile": file, "layer": seen}); !strings.Contains(got, fmt.Sprintf("has %d layers", seen)) {
			t.Errorf("%s: the pages list %d layers: %s", file, seen, got)
		}
		b.answer("compare", args{"files": []string{file, "model.yaml"}, "quantity": "macs", "limit": 500})
	}
}

// TestHostile calls every tool with arguments that it must refuse.
func TestHostile(t *testing.T) {
	t.Parallel()
	b := newBed(t, 0)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret.onnx"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "secret.onnx"), filepath.Join(b.dir, "link.onnx")); err != nil {
		t.Skip(err)
	}
	if err := errors.Join(
		os.Symlink(outside, filepath.Join(b.dir, "linked")),
		os.Symlink("loop.onnx", filepath.Join(b.dir, "loop.onnx")),
		os.MkdirAll(filepath.Join(b.dir, "folder"), 0o700),
		os.Symlink(filepath.Join(outside, "secret.onnx"), filepath.Join(b.dir, "folder", "in.json")),
		os.Symlink(outside, filepath.Join(b.out, "away")),
	); err != nil {
		t.Fatal(err)
	}
	b.answer("estimate", args{"model": "model.yaml", "target": "stm32l4r5", "save": "there.json"})

	type refused struct {
		args args
		want string
	}
	// The value of an argument that names a file that is refused, and why.
	files := map[string]string{
		"":                                       "name a file",
		"..":                                     "outside",
		"../secret.onnx":                         "outside",
		"a/../../secret.onnx":                    "outside",
		filepath.Join(outside, "secret.onnx"):    "outside",
		filepath.Join(outside, "not there.onnx"): "outside",
		"/etc/passwd":                            "outside",
		"/proc/self/environ":                     "outside",
		"/dev/zero":                              "outside",
		"link.onnx":                              "outside",
		"linked/secret.onnx":                     "outside",
		"loop.onnx":                              "loop.onnx",
		"missing.onnx":                           "no such file",
		"zero\x00byte.onnx":                      "zero byte",
		"--help":                                 "no such file",
		strings.Repeat("x", 5000):                "5000 characters, expected at most 4096",
		strings.Repeat("x", 3000):                "name too long",
	}
	broken := map[string]string{"broken.onnx": "", "broken.tflite": "", "crash.onnx": "without an answer", "text.txt": "", ".": "no regular file"}
	if err := pipe(filepath.Join(b.dir, "pipe.onnx")); err == nil {
		broken["pipe.onnx"] = "no regular file"
	}
	cases := map[string][]refused{}
	add := func(tool, want string, a args) { cases[tool] = append(cases[tool], refused{a, want}) }
	for name, want := range files {
		for _, tool := range []string{"summary", "profile", "fit", "advise"} {
			add(tool, want, args{"model": name})
		}
		add("estimate", want, args{"model": name, "target": "stm32l4r5"})
		add("import", want, args{"path": name})
		if name != "" {
			add("import", want, args{"path": "trace.json", "model": name})
		}
		add("compare", want, args{"files": []string{"p1", name}})
		add("layers", want, args{"profile": name})
		add("explain_layer", want, args{"profile": name, "layer": 0})
	}
	for name, want := range broken {
		for _, tool := range []string{"summary", "profile", "fit", "advise"} {
			add(tool, want, args{"model": name})
		}
		add("estimate", want, args{"model": name, "target": "stm32l4r5"})
		if name != "." && name != "text.txt" {
			add("compare", "", args{"files": []string{"p1", name}})
		}
		add("layers", "", args{"profile": name})
	}
	add("layers", "", args{"profile": "broken.opmeter"})
	add("advise", "", args{"model": "broken.opmeter"})
	add("import", "no regular file of an allowed folder", args{"path": "folder"})
	add("import", "", args{"path": "text.txt"})
	add("import", "format", args{"path": "trace.json", "format": "../x"})
	for _, bad := range []any{"x", -1, 0, 1e300, 1.5, nil, []any{}, args{}, true, 1 << 40} {
		add("profile", "", args{"model": "model.yaml", "threads": bad})
	}
	for _, bad := range []any{"x", -1, 0, 1e300, 61, nil} {
		add("profile", "", args{"model": "model.yaml", "seconds": bad})
	}
	for _, bad := range []any{"", "host", "../x", "device:/dev/null", "emulate:x", "/etc/passwd", "no-such-chip", "--open", 7} {
		add("estimate", "", args{"model": "model.yaml", "target": bad})
		if bad != "" {
			add("advise", "", args{"model": "model.yaml", "target": bad})
		}
	}
	for _, bad := range []any{"./libx.so", "a,b", "--x", "no-such-engine", "OPMETER"} {
		add("profile", "", args{"model": "model.yaml", "engine": bad})
	}
	many := args{}
	for i := range 100 {
		many[strconv.Itoa(i)] = "1"
	}
	for _, bad := range []any{"x", 3, args{"image": 3}, args{"image": "1x99999999999999999999"}, args{"none": "1"}, args{"a\x00b": "1"}, many, args{"image": strings.Repeat("1x", 4000)}} {
		add("summary", "", args{"model": "model.yaml", "shapes": bad})
	}
	for _, bad := range []any{
		"", "/abs.json", "../up.json", "away/x.json", "there.json", "x.exe", "x", ".bashrc", "a\x00.json", "no/such/folder.json", strings.Repeat("x", 3000) + ".json", 7, nil,
	} {
		if bad != "" {
			add("summary", "", args{"model": "model.yaml", "save": bad})
		}
	}
	for _, bad := range []any{nil, 3, "p1", []string{}, []string{"p1"}, slices.Repeat([]string{"p1"}, 9), slices.Repeat([]string{"p1"}, 1000), []any{1, 2}, []string{"p1", "p99"}, []string{"p1", "p99999999999999999999"}} {
		add("compare", "", args{"files": bad})
	}
	add("compare", "quantity", args{"files": []string{"p1", "model.yaml"}, "quantity": "--x"})
	add("compare", "", args{"files": []string{"p1", "model.yaml"}, "quantity": "no_such_key"})
	add("compare", "offset", args{"files": []string{"p1", "model.yaml"}, "offset": 1 << 20})
	add("compare", "files: p1 is given twice", args{"files": []string{"p1", "p1"}})
	for _, bad := range []any{-1, 16, 1 << 40, 1e300, 0.5, "0", nil} {
		add("explain_layer", "", args{"profile": "p1", "layer": bad})
	}
	add("layers", "offset", args{"profile": "p1", "offset": 17})
	add("layers", "", args{"profile": "p1", "limit": 501})
	add("layers", "sort", args{"profile": "p1", "sort": "x"})
	add("advise", "leave them out", args{"model": "p1", "threads": 2})
	add("fit", "", args{"model": "model.yaml", "latency_s": -1})
	add("fit", "", args{"model": "model.yaml", "ram_bytes": 1e30})
	add("profile", "seconds: 61, expected at most 60", args{"model": "model.yaml", "seconds": 61})
	add("profile", "seconds: 0.01, expected at least 0.05", args{"model": "model.yaml", "seconds": 0.01})
	add("profile", `threads: is of type "string", expected "integer"`, args{"model": "model.yaml", "threads": "x"})
	add("summary", "shapes: 100 entries, expected at most 64", args{"model": "model.yaml", "shapes": many})
	add("summary", "shapes: 5000 characters, expected at most 4096", args{"model": "model.yaml", "shapes": args{"image": strings.Repeat("x", 5000)}})
	add("compare", "files: 1000 entries, expected at most 64", args{"files": slices.Repeat([]string{"p1"}, 1000)})
	add("summary", `missing arguments ["model"]`, args{})
	add("summary", `unexpected arguments ["unknown"]`, args{"model": "model.yaml", "unknown": 1})
	deep := any("x")
	for range 900 { // the protocol's library ends a session at 1000
		deep = []any{deep}
	}
	for tool, err := range b.client.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		add(tool.Name, "unexpected", args{"model": "model.yaml", "unknown": 1})
		add(tool.Name, "", args{})
		add(tool.Name, "", args{"model": deep, "profile": deep, "files": deep, "path": deep})
		add(tool.Name, "", args{"model": strings.Repeat("x", 1<<19)})
	}
	add("no_such_tool", "unknown tool", args{})
	for tool, list := range cases {
		for _, c := range list {
			if got := b.refusal(tool, c.args); got == "" || !strings.Contains(got, c.want) || strings.Contains(got, "internal error") || strings.Contains(got, "validating") {
				t.Errorf("%s %s: %q, expected %q", tool, short(c.args), got, c.want)
			}
		}
	}
	b.answer("layers", args{"profile": "p1"}) // the server still answers
	if list, err := os.ReadDir(b.out); err != nil || len(list) != 2 {
		t.Errorf("files that were written: %v, %v", list, err)
	}
	if list, err := os.ReadDir(outside); err != nil || len(list) != 1 {
		t.Errorf("files outside: %v, %v", list, err)
	}
}

// hanging starts a call that does not end by itself, and waits until it runs.
func (b *bed) hanging(ctx context.Context) (ended chan error, pid int) {
	b.t.Helper()
	ended = make(chan error, 1)
	go func() {
		r, err := b.call(ctx, "profile", args{"model": "hang.onnx"})
		if err == nil && r.IsError {
			err = errors.New(textOf(r))
		}
		ended <- err
	}()
	for !slices.Contains(b.progress(), "measuring 25 %, 3 s left") {
		select {
		case <-b.noted:
		case err := <-ended:
			b.t.Fatalf("the call ended early: %v", err)
		}
	}
	text, err := os.ReadFile(filepath.Join(b.dir, "hang.onnx.pid"))
	if err != nil {
		b.t.Fatal(err)
	}
	if pid, err = strconv.Atoi(string(text)); err != nil {
		b.t.Fatal(err)
	}
	return ended, pid
}

func (b *bed) progress() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.notes)
}

// TestCancel ends a measurement by the client's notification, and answers the next call.
func TestCancel(t *testing.T) {
	t.Parallel()
	b := newBed(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	ended, pid := b.hanging(ctx)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
	b.answer("summary", args{"model": "model.yaml"}) // it has its turn when the measurement has ended
	if running(pid) {
		t.Errorf("the measurement still runs as process %d", pid)
	}
}

// TestLimit ends a call that takes too long.
func TestLimit(t *testing.T) {
	t.Parallel()
	b := newBed(t, 50*time.Millisecond)
	if got := b.refusal("profile", args{"model": "hang.onnx"}); !strings.Contains(got, "time limit of 50ms") {
		t.Errorf("a call that hangs: %q", got)
	}
	if got := b.refusal("profile", args{"model": "model.yaml", "seconds": 1}); !strings.Contains(got, "time limit of a call is 50ms") {
		t.Errorf("a measurement above the limit: %q", got)
	}
}

// TestDisconnect closes the connection in the middle of a measurement: it ends, and the server too.
func TestDisconnect(t *testing.T) {
	t.Parallel()
	b := newBed(t, 0)
	ended, pid := b.hanging(t.Context())
	if err := b.end(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	if err := <-ended; err == nil {
		t.Error("the call was answered")
	}
	if running(pid) {
		t.Errorf("the measurement still runs as process %d", pid)
	}
}

// TestStop ends the server in the middle of a measurement, as a signal does.
func TestStop(t *testing.T) {
	t.Parallel()
	b := newBed(t, 0)
	ended, pid := b.hanging(t.Context())
	b.stop()
	if err := <-ended; err == nil {
		t.Error("the call was answered")
	}
	if err := b.end(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	if running(pid) {
		t.Errorf("the measurement still runs as process %d", pid)
	}
}

// TestConcurrent calls tools at the same time: one runs, others wait or are refused.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	b := newBed(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended, _ := b.hanging(ctx)
	var group sync.WaitGroup
	results := make(chan string, 40)
	for range cap(results) {
		group.Go(func() {
			r, err := b.call(t.Context(), "summary", args{"model": "model.yaml"})
			switch {
			case err != nil:
				results <- err.Error()
			case r.IsError:
				results <- textOf(r)
			default:
				results <- ""
			}
		})
	}
	refused := 0
	for refused < cap(results)-16 { // these are answered while the first call runs
		if got := <-results; !strings.Contains(got, "calls are waiting already") {
			t.Fatalf("a call beside one that hangs: %q", got)
		}
		refused++
	}
	b.refusal("layers", args{"profile": "p1"}) // what needs no program does not wait
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the first call ended with %v", err)
	}
	group.Wait()
	close(results)
	for got := range results {
		if got != "" {
			t.Errorf("a call that waited: %s", got)
		}
	}
	if !slices.Contains(b.progress(), "waiting for another call") {
		t.Error("no call was told that it waits")
	}
}

// TestMessages sends what is no message of the protocol: the server says so and answers the next.
func TestMessages(t *testing.T) {
	t.Parallel()
	const (
		hello  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}` + "\n" //nolint:misspell // word of the protocol
		ask    = `{"jsonrpc":"2.0","id":77,"method":"tools/list"}`
		parse  = `"error":{"code":-32700`
		wrong  = `"error":{"code":-32600`
		nested = 200_000
	)
	call := func(arguments string) string {
		return `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"summary","arguments":` + arguments + "}}\n"
	}
	for name, c := range map[string]struct{ text, want string }{
		"nothing":    {"", ""},
		"empty":      {"\n\r\n \n", ""},
		"no JSON":    {"garbage\n", parse},
		"no text":    {"\xff\xfe\x00\n", parse},
		"cut":        {hello[:40] + "\n", parse},
		"two":        {strings.TrimSpace(hello) + " " + hello, parse},
		"deep":       {call(strings.Repeat("[", nested) + strings.Repeat("]", nested)), parse},
		"deep batch": {strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + "\n", wrong},
		"nested":     {call(strings.Repeat("[", 2000) + strings.Repeat("]", 2000)), wrong},
		"long":       {call(`"` + strings.Repeat("x", 3<<20) + `"`), parse},
		"number":     {"7\n", wrong},
		"no message": {"{}\n", wrong},
		"version":    {`{"jsonrpc":"1.0","id":2,"method":"tools/list"}` + "\n", wrong},
		"method":     {`{"jsonrpc":"2.0","id":2,"method":7}` + "\n", wrong},
		"identifier": {`{"jsonrpc":"2.0","id":[1],"method":"tools/list"}` + "\n", wrong},
		"no params":  {`{"jsonrpc":"2.0","id":2,"method":"tools/call"}` + "\n", `"id":2,"error"`},
		"batch":      {`[{"jsonrpc":"2.0","id":2,"method":"tools/list"}]` + "\n", wrong},
		"early":      {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := hello + c.text + ask
			if name == "early" {
				text = call(`{"model":"x"}`) + hello + ask
			}
			in, toServer := io.Pipe()
			fromServer, out := io.Pipe()
			done := make(chan error, 1)
			go func() {
				done <- mcp.Serve(t.Context(), in, out, mcp.Options{Program: os.Args[0], Allow: []string{t.TempDir()}})
				_ = out.Close()
			}()
			sent := make(chan error, 1)
			go func() {
				_, err := io.WriteString(toServer, text+"\n")
				sent <- err
			}()
			var lines []string
			answers := bufio.NewScanner(fromServer)
			answers.Buffer(nil, 1<<20)
			for answers.Scan() {
				line := answers.Text()
				if !json.Valid([]byte(line)) {
					t.Errorf("answer %q", line)
				}
				if strings.Contains(line, `"id":77,`) {
					_ = toServer.Close() // the client leaves; calls end in any order
				}
				lines = append(lines, line)
			}
			if err := errors.Join(<-sent, toServer.Close()); err != nil {
				t.Error(err)
			}
			if err := <-done; err != nil {
				t.Errorf("the server ended with %v", err)
			}
			if err := answers.Err(); err != nil || !strings.Contains(strings.Join(lines, "\n"), c.want) {
				t.Errorf("%v, %.1000s: expected %s", err, strings.Join(lines, "\n"), c.want)
			}
		})
	}
}

type closer struct{ io.Writer }

func (closer) Close() error { return nil }

// TestOptions refuses bad options of the server with one line.
func TestOptions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, o := range []mcp.Options{
		{Allow: []string{filepath.Join(dir, "none")}},
		{Allow: []string{file}},
		{Allow: []string{"/proc"}},
		{Allow: []string{"/dev/fd"}},
		{Allow: []string{dir}, Write: filepath.Join(dir, "none")},
		{Allow: []string{dir}, Write: file},
		{Allow: []string{dir}, Limit: -1},
	} {
		err := mcp.Serve(t.Context(), io.NopCloser(strings.NewReader("")), closer{io.Discard}, o)
		if err == nil || !strings.HasPrefix(err.Error(), "--") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
