package buildinfo

import "testing"

func TestReleased(t *testing.T) {
	t.Parallel()
	for v, want := range map[string]string{"": "development", "(devel)": "development", "v0.0.0-00010101000000-000000000000": "development", "v1.2.3": "v1.2.3", "v0.0.0-20261128155100-0123456789ab": "v0.0.0-20261128155100-0123456789ab"} {
		if got := released(v); got != want {
			t.Errorf("%q: %q, want %q", v, got, want)
		}
	}
}
