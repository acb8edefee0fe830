package op_test

import (
	"testing"

	"github.com/opmeter/opmeter/internal/runtime/op"
)

// TestWorkspace lets calls reserve scratch memory one after another.
func TestWorkspace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		calls [][]int // bytes that each call reserves
		want  int     // total bytes
	}{
		{"one call", [][]int{{1000, 24}}, 1024},
		{"the same again", [][]int{{1000, 24}, {1000, 24}}, 1024},
		{"less", [][]int{{1000}, {10, 20, 30, 700}}, 1000},
		{"more", [][]int{{1000}, {1001}, {1000, 1001}}, 2001},
		{"small ones first", [][]int{{64}, {1000}, {64, 1000}}, 1064},
		{"nothing", [][]int{{0}, {0, 0}}, 0},
		{"two ends that leave no room", [][]int{{100}, {64, 36, 1}}, 101},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var r op.Workspace
			for i, sizes := range c.calls {
				call := &op.Call{}
				r.Begin(call)
				var all [][]byte
				for _, n := range sizes {
					b := call.Scratch(n)
					if len(b) != n || cap(b) != n {
						t.Fatalf("call %d: %d bytes with room for %d, want %d", i, len(b), cap(b), n)
					}
					for k := range b {
						b[k] = byte(len(all) + 1)
					}
					all = append(all, b)
				}
				r.End()
				for k, b := range all {
					for _, v := range b {
						if v != byte(k+1) {
							t.Fatalf("call %d: piece %d has a byte of piece %d", i, k, v-1)
						}
					}
				}
				if late := call.Scratch(8); len(late) != 8 || r.Bytes() > c.want {
					t.Errorf("call %d: %d bytes late, %d in all, want 8 of its own and %d at most", i, len(late), r.Bytes(), c.want)
				}
			}
			if got := r.Bytes(); got != c.want {
				t.Errorf("%d bytes in all, want %d", got, c.want)
			}
		})
	}
}

// TestWorkspaceGrowth checks that a call that needs slightly more at each preparation does not add
// a block each time.
func TestWorkspaceGrowth(t *testing.T) {
	t.Parallel()
	var r op.Workspace
	call := &op.Call{}
	for n := range 1000 {
		r.Begin(call)
		if b := call.Scratch(1000 + n); len(b) != 1000+n {
			t.Fatalf("%d bytes, want %d", len(b), 1000+n)
		}
		r.End()
	}
	if r.Bytes() > 10_000 {
		t.Errorf("%d bytes for calls of at most 2000", r.Bytes())
	}
}
