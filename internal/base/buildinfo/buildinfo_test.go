package buildinfo

import (
	"runtime/debug"
	"testing"
)

func TestReleased(t *testing.T) {
	t.Parallel()
	for v, want := range map[string]string{"": "development", "(devel)": "development", "v0.0.0-00010101000000-000000000000": "development", "v1.2.3": "v1.2.3", "v0.0.0-20261128155100-0123456789ab": "v0.0.0-20261128155100-0123456789ab"} {
		if got := released(v); got != want {
			t.Errorf("%q: %q, want %q", v, got, want)
		}
	}
}

// A release's own stamp comes before what the build recorded; a program that contains the module
// has the module's version and not its own commit.
func TestRead(t *testing.T) {
	t.Parallel()
	vcs := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123abcd"}, {Key: "vcs.time", Value: "2026-11-29T08:00:00Z"}}
	own := &debug.BuildInfo{Main: debug.Module{Path: module, Version: "v1.2.3"}, Settings: vcs}
	for _, c := range []struct {
		stamp string
		b     *debug.BuildInfo
		want  string
	}{
		{"v2.0.0,fedcba98,2026-12-24", own, "v2.0.0 (commit fedcba98, 2026-12-24)"},
		{"v2.0.0,,2026-12-24", nil, "v2.0.0 (2026-12-24)"},
		{"", own, "v1.2.3 (commit 0123abcd, 2026-11-29)"},
		{"", &debug.BuildInfo{Settings: vcs[:1]}, "development (commit 0123abcd)"},
		{"", &debug.BuildInfo{Deps: []*debug.Module{{Path: module, Version: "v1.2.4"}}, Settings: vcs}, "v1.2.4"},
		{"", nil, "development"},
	} {
		if got := read(c.stamp, c.b).String(); got != c.want {
			t.Errorf("%q: %q, want %q", c.stamp, got, c.want)
		}
	}
}
