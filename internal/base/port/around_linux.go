package port

import (
	"os"
	"path/filepath"
	"strings"
)

// Around names environments that hide devices from the program: "wsl", "container", "machine" (a
// virtual one). It guesses from traces in the system's files.
func Around() []string { return aroundIn("/") }

func aroundIn(root string) []string {
	var out []string
	if strings.Contains(strings.ToLower(line(filepath.Join(root, "proc/version"))), "microsoft") {
		return []string{"wsl"}
	}
	exists := func(name string) bool {
		_, err := os.Stat(filepath.Join(root, name))
		return err == nil
	}
	if exists(".dockerenv") || exists("run/.containerenv") || strings.HasPrefix(line(filepath.Join(root, "proc/1/cgroup")), "0::/docker") {
		out = append(out, "container")
	}
	maker := line(filepath.Join(root, "sys/class/dmi/id/sys_vendor")) + " " + line(filepath.Join(root, "sys/class/dmi/id/product_name"))
	for _, m := range []string{"QEMU", "KVM", "VMware", "VirtualBox", "innotek", "Xen", "Virtual Machine", "Parallels"} {
		if strings.Contains(maker, m) {
			return append(out, "machine")
		}
	}
	return out
}
