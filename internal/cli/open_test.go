package cli

import (
	"slices"
	"testing"
)

func TestDesktop(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		goos     string
		terminal bool
		env      map[string]string
		want     bool
	}{
		{"X11", "linux", true, map[string]string{"DISPLAY": ":0"}, true},
		{"Wayland", "linux", true, map[string]string{"WAYLAND_DISPLAY": "wayland-0"}, true},
		{"console", "linux", true, nil, false},
		{"pipe", "linux", false, map[string]string{"DISPLAY": ":0"}, false},
		{"CI", "linux", true, map[string]string{"DISPLAY": ":99", "CI": "true"}, false},
		{"BSD", "freebsd", true, map[string]string{"DISPLAY": ":0"}, true},
		{"macOS", "darwin", true, nil, true},
		{"macOS from afar", "darwin", true, map[string]string{"SSH_CONNECTION": "a b"}, false},
		{"macOS, pipe", "darwin", false, nil, false},
		{"Windows", "windows", true, nil, true},
		{"Windows, CI", "windows", true, map[string]string{"CI": "1"}, false},
	} {
		d := desktop{tt.goos, tt.terminal, func(k string) string { return tt.env[k] }}
		if got := d.present(); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestOpener(t *testing.T) {
	t.Parallel()
	for goos, want := range map[string][]string{
		"linux":   {"xdg-open", "/a b.html"},
		"darwin":  {"open", "/a b.html"},
		"windows": {"rundll32", "url.dll,FileProtocolHandler", "/a b.html"},
	} {
		if got := (desktop{goos: goos}).opener("/a b.html"); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", goos, got, want)
		}
	}
}

func TestPageOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		files []string
		want  string
	}{{nil, ""}, {[]string{"a.csv", "b.HTML", "c.html"}, "b.HTML"}, {[]string{"html", "a.md"}, ""}} {
		if got := pageOf(tt.files); got != tt.want {
			t.Errorf("pageOf(%q) = %q, want %q", tt.files, got, tt.want)
		}
	}
}
