package cli

import (
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/opmeter/opmeter/internal/base/subprocess"
)

// A parent that holds standard input open ends the program by ending itself. Without the variable,
// the input stays what it is.
func TestWatchParent(t *testing.T) {
	r, w := io.Pipe()
	sig := make(chan os.Signal, 1)
	t.Setenv(subprocess.ParentVariable, "stdin")
	in := watchParent(r, sig)
	if b, err := io.ReadAll(in); err != nil || len(b) > 0 {
		t.Errorf("%q, %v", b, err)
	}
	if v := os.Getenv(subprocess.ParentVariable); v != "" {
		t.Errorf("programs that this one starts find %s=%s", subprocess.ParentVariable, v)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if s := <-sig; s != syscall.SIGTERM {
		t.Errorf("%v", s)
	}
	plain := strings.NewReader("text")
	if in := watchParent(plain, sig); in != plain {
		t.Error("the input is another one")
	}
}
