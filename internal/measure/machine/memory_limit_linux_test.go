package machine

import (
	"os"
	"path/filepath"
	"testing"
)

// TestGroupFree reads limits of control groups of both versions: the tightest of the group and
// its parents applies, without reclaimable page cache.
func TestGroupFree(t *testing.T) {
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
			got, ok := system{root}.groupFree()
			if ok != (tt.want >= 0) || ok && got != tt.want {
				t.Errorf("got %d (%v), want %d", got, ok, tt.want)
			}
		})
	}
}
