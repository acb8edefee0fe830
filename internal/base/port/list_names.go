//go:build (darwin && !cgo) || freebsd || openbsd

package port

import (
	"path/filepath"
	"slices"
	"strings"
)

// connected lists the ports by the names that their drivers use: this build cannot read their USB
// ids.
func connected() ([]Info, error) {
	var list []Info
	for _, pattern := range []string{"/dev/cu.*", "/dev/cua[uU]*", "/dev/cuaU*"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			known := slices.ContainsFunc(list, func(i Info) bool { return i.Name == n })
			if known || hidden(n) || strings.HasSuffix(n, ".init") || strings.HasSuffix(n, ".lock") {
				continue
			}
			list = append(list, Info{Name: n})
		}
	}
	return list, nil
}
