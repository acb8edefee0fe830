package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/opmeter/opmeter/internal/cli"
)

// program names the variable that makes the test binary the program opmeter.
const program = "OPMETER_TEST_PROGRAM"

// TestMain makes the test binary both programs: opmeter starts this one with the flag -opmeter.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "-opmeter="):
		main()
	case os.Getenv(program) != "":
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	default:
		os.Exit(m.Run())
	}
}

// command is opmeter with arguments, in a folder.
func command(dir, mcp string, args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], args...)
	c.Dir, c.Env = dir, append(os.Environ(), program+"=1", "OPMETER_MCP="+mcp)
	return c
}

// TestPipes starts opmeter mcp as a client does, and ends it by closing its input.
func TestPipes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	model, err := os.ReadFile(filepath.FromSlash("../../examples/resnet8.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "model.yaml"), model, 0o600); err != nil {
		t.Fatal(err)
	}
	results := t.TempDir()
	c := command(dir, os.Args[0], "mcp", "--allow", dir, "--allow", results, "--write", results, "--limit", "5m")
	client, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: c}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: "summary", Arguments: map[string]any{"model": "model.yaml"}})
	if err != nil {
		t.Fatal(err)
	}
	if text, ok := r.Content[0].(*sdk.TextContent); r.IsError || !ok || !strings.Contains(text.Text, "Layers       16") {
		t.Errorf("answer %+v", r.Content[0])
	}
	r, err = client.CallTool(t.Context(), &sdk.CallToolParams{Name: "summary", Arguments: map[string]any{"model": "model.yaml", "save": "x.json"}})
	if err != nil || r.IsError {
		t.Errorf("a file with --write: %v, %v", r, err)
	}
	if err := client.Close(); err != nil {
		t.Errorf("opmeter mcp ended with %v", err)
	}
	for _, folder := range []string{dir, results} {
		if list, err := os.ReadDir(folder); err != nil || len(list) != 1 {
			t.Errorf("files in the folder: %v, %v", list, err)
		}
	}
}

// TestDefaults reads the working folder, and writes nothing.
func TestDefaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "model.onnx"), []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: command(dir, os.Args[0], "mcp")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[[2]string]string{
		{"model.onnx", ""}:       "model.onnx",
		{"model.onnx", "x.json"}: "this server writes no files: start opmeter mcp with --write DIR",
		{"../x.onnx", ""}:        "outside of the folders that this server may read",
	} {
		r, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: "summary", Arguments: map[string]any{"model": args[0], "save": args[1]}})
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := r.Content[0].(*sdk.TextContent); !r.IsError || !ok || !strings.Contains(text.Text, want) {
			t.Errorf("%v: %+v", args, r.Content[0])
		}
	}
	if err := client.Close(); err != nil {
		t.Errorf("opmeter mcp ended with %v", err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("files in the folder: %v, %v", list, err)
	}
}

// TestErrors shows one line for a program that is absent and for bad flags.
func TestErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		mcp  string
		args []string
		want string
	}{
		{filepath.Join(dir, "none"), []string{"mcp"}, "no such program: name opmeter-mcp with it, or unset it"},
		{os.Args[0], []string{"mcp", "--allow", "none"}, "--allow none: no such file or directory"},
		{os.Args[0], []string{"mcp", "--write", "none"}, "--write none: no such file or directory"},
		{os.Args[0], []string{"mcp", "--limit", "0"}, "--limit: write a time above zero"},
		{os.Args[0], []string{"mcp", "model.onnx"}, "is not expected here"},
	} {
		out, err := command(dir, c.mcp, c.args...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%v: %v: %s", c.args, err, out)
		}
	}
}
