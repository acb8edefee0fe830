package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// Where the program for agents is absent, one line says how to get it.
func TestAgentsAbsent(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv(mcpVariable, "")
	var out, errw bytes.Buffer
	status := run(context.Background(), []string{"mcp"}, strings.NewReader(""), &out, &errw)
	if got := errw.String(); status != statusUse || out.Len() > 0 || strings.Count(got, "\n") != 1 || !strings.Contains(got, `pip install "opmeter[mcp]"`) {
		t.Errorf("status %d, output %q, errors %q", status, out.String(), got)
	}
}
