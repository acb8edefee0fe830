//go:build linux || darwin || freebsd || openbsd

package port

import (
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"go.bug.st/serial"

	"github.com/opmeter/opmeter/internal/base/infile"
)

// inspect examines the file of a device.
func inspect(name string) Inspection {
	i := Inspection{Name: name, Path: name}
	if p, err := filepath.EvalSymlinks(name); err == nil {
		i.Path = p
	}
	if p, err := filepath.Abs(i.Path); err == nil {
		i.Path = p
	}
	st, err := os.Stat(i.Path)
	if err != nil {
		// A folder without search permission hides whether the device exists.
		if errors.Is(err, fs.ErrPermission) {
			i.Exists, i.Access = true, Denied
		}
		return i
	}
	i.Exists, i.file, i.Mode = true, st, st.Mode().Perm()
	switch {
	case st.Mode().IsRegular():
		i.Kind = "a file"
	case st.Mode()&fs.ModeCharDevice == 0:
		i.Kind = infile.Kind(st.Mode())
	}
	if i.Kind == "" && !terminal(st) {
		i.Kind = "a device of another kind"
	}
	if i.Kind != "" {
		return i
	}
	i.Pseudo = strings.HasPrefix(i.Path, "/dev/pts/") || strings.HasPrefix(i.Path, "/dev/ttys0")
	i.Access = access(i.Path)
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		i.group(strconv.FormatUint(uint64(s.Uid), 10), strconv.FormatUint(uint64(s.Gid), 10))
	}
	i.info()
	return i
}

// group finds the owner of the device and whether the user is in its group.
func (i *Inspection) group(uid, gid string) {
	if u, err := user.LookupId(uid); err == nil {
		i.Owner = u.Username
	}
	if g, err := user.LookupGroupId(gid); err == nil {
		i.Group = g.Name
	}
	if u, err := user.Current(); err == nil {
		i.User = u.Username
		if ids, err := u.GroupIds(); err == nil {
			i.InGroup = slices.Contains(ids, gid)
		}
	}
	n, err := strconv.Atoi(gid)
	if err != nil {
		return
	}
	mine, err := os.Getgroups()
	i.Effective = err == nil && slices.Contains(mine, n) || os.Getegid() == n
}

// stillThere returns an error if the device file is gone or belongs to another device.
func stillThere(path string, was fs.FileInfo, _ serial.Port) error {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return err
	case err == nil && was != nil && !os.SameFile(st, was):
		return errors.New("another device has its name")
	}
	return nil
}
