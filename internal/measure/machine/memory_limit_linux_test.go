package machine

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestGroupBounds reads limits of control groups of both versions: the tightest of the group and
// its parents applies, without reclaimable page cache.
func TestGroupBounds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  int64 // -1: unknown
	}{
		{"none", map[string]string{}, -1},
		{"unlimited", map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n", "sys/fs/cgroup/a/memory.current": "5\n"}, -1},
		{"own", map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "1000\n", "sys/fs/cgroup/a/memory.current": "300\n"}, 700},
		{"dropped files", map[string]string{
			"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "1000\n", "sys/fs/cgroup/a/memory.current": "300\n",
			"sys/fs/cgroup/a/memory.stat": "anon 10\ninactive_file 200\nactive_file 90\n",
		}, 900},
		{"around", map[string]string{
			"proc/self/cgroup": "0::/a/b/c\n", "sys/fs/cgroup/a/b/c/memory.max": "1000\n", "sys/fs/cgroup/a/b/c/memory.current": "100\n",
			"sys/fs/cgroup/a/memory.max": "2000\n", "sys/fs/cgroup/a/memory.current": "1500\n",
		}, 500},
		{"container", map[string]string{"proc/self/cgroup": "0::/../host/path\n", "sys/fs/cgroup/memory.max": "1000\n", "sys/fs/cgroup/memory.current": "999\n"}, 1},
		{"used up", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1000\n", "sys/fs/cgroup/memory.current": "1001\n"}, 0},
		{"first version", map[string]string{
			"proc/self/cgroup": "12:cpu,cpuacct:/x\n4:memory:/docker/z\n1:name=systemd:/y\n",
			"sys/fs/cgroup/memory/docker/z/memory.limit_in_bytes": "4096\n", "sys/fs/cgroup/memory/docker/z/memory.usage_in_bytes": "96\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "1\n",
		}, 4000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for name, text := range tt.files {
				path := filepath.Join(root, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, ok := tightest(system{root}.groupBounds(), func(b Bound) int64 { return b.Free })
			if ok != (tt.want >= 0) || ok && got.Free != tt.want {
				t.Errorf("got %d (%v), want %d", got.Free, ok, tt.want)
			}
		})
	}
}

// TestMemoryLimit: the default is what is free less a reserve, and names the tightest bound.
func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	computer := Bound{By: "computer", Free: 16 << 30, Most: 24 << 30}
	container := Bound{By: "container", Free: 2 << 30, Most: 3 << 30}
	for _, tt := range []struct {
		name   string
		bounds []Bound
		memory *int64
		want   int
		by     string
	}{
		{"computer", []Bound{computer}, nil, 14 << 30, "computer"},
		{"container", []Bound{computer, container}, nil, 2<<30 - 256<<20, "container"},
		{"little", []Bound{{By: "process", Free: 100 << 20}}, nil, 50 << 20, "process"},
		{"nothing", []Bound{{By: "process"}}, nil, 1 << 20, "process"},
		{"unknown", nil, new(int64(4 << 30)), 2 << 30, "half of the memory of this computer"},
	} {
		if n, by := limitOf(tt.bounds, tt.memory); n != tt.want || by != tt.by {
			t.Errorf("%s: %d by %q, want %d by %q", tt.name, n, by, tt.want, tt.by)
		}
	}
	both := []Bound{computer, container}
	if err := holds(both, 3<<30); err != nil {
		t.Errorf("3 GiB: %v", err)
	}
	const want = "4.0 GiB cannot be held: at most 3.0 GiB are possible, limited by container"
	if err := holds(both, 4<<30); err == nil || err.Error() != want {
		t.Errorf("4 GiB: %v, want %s", err, want)
	}
}

// TestBounds: free memory and the control group are bounds, each with what it could hold at most.
func TestBounds(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range map[string]string{
		"proc/meminfo": "MemTotal: 2048 kB\nMemAvailable: 1024 kB\nSwapTotal: 512 kB\n", "proc/self/cgroup": "0::/a\n",
		"sys/fs/cgroup/a/memory.max": "1000\n", "sys/fs/cgroup/a/memory.current": "300\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := system{root}.bounds()
	want := []Bound{
		{"the free memory of this computer", 1 << 20, 2<<20 + 512<<10},
		{"the memory limit of the container or control group", 700, 1000},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
