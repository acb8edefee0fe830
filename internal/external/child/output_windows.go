package child

import (
	"os"

	"golang.org/x/sys/windows"
)

// Output reserves standard output for messages: what libraries opened later print there goes to
// standard error.
func Output() (*os.File, error) {
	out := os.Stdout
	if err := windows.SetStdHandle(windows.STD_OUTPUT_HANDLE, windows.Handle(os.Stderr.Fd())); err != nil {
		return nil, err
	}
	os.Stdout = os.Stderr
	return out, nil
}
