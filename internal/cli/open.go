package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// desktop is what decides whether a page is opened by itself.
type desktop struct {
	goos     string
	terminal bool // standard output is one: a person is there
	env      func(string) string
}

// present says that somebody sits at a desktop: never in a pipe, under CI, in a
// remote session of Windows or macOS, or without a display.
func (d desktop) present() bool {
	if !d.terminal || d.env("CI") != "" {
		return false
	}
	switch d.goos {
	case "windows", "darwin":
		return d.env("SSH_CONNECTION") == ""
	}
	return d.env("DISPLAY") != "" || d.env("WAYLAND_DISPLAY") != ""
}

// opener is the command that shows a file in the browser.
func (d desktop) opener(path string) []string {
	switch d.goos {
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler", path}
	case "darwin":
		return []string{"open", path}
	}
	return []string{"xdg-open", path}
}

// open shows the page among files that were written, the first if there are several.
func (a *app) open(files []string) {
	if page := pageOf(files); page != "" {
		if path, err := filepath.Abs(page); err == nil {
			a.browse(path)
		}
	}
}

// browse shows a page and does not wait for the browser. Without a browser the page is there all
// the same: that is not an error.
func (a *app) browse(page string) {
	d := desktop{runtime.GOOS, a.width > 0, os.Getenv}
	if !d.present() {
		return
	}
	args := d.opener(page)
	c := exec.Command(args[0], args[1:]...)
	if c.Start() == nil {
		_ = c.Process.Release()
	}
}

// pageOf is the first name of a page, "" for none.
func pageOf(files []string) string {
	for _, f := range files {
		if strings.EqualFold(filepath.Ext(f), ".html") {
			return f
		}
	}
	return ""
}
