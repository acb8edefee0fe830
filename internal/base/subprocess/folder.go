package subprocess

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/opmeter/opmeter/internal/base/filelock"
)

const (
	// folderPrefix begins the names of all temporary folders.
	folderPrefix = "opmeter-"
	// lockName is a file in each folder that is locked as long as the process lives that made it.
	lockName = ".opmeter-lock"
	// mostNames bounds the names of the folder for temporary files that are looked at.
	mostNames = 20_000
)

// folders are the temporary folders of this process with their locks.
var folders struct {
	sync.Mutex
	locks map[string]*os.File
}

// Folder makes a temporary folder whose name begins with opmeter-, the kind and a hyphen. remove
// removes it with all that is in it. If this process is killed before, [Sweep] does.
func Folder(kind string) (path string, remove func(), err error) {
	if kind != "" {
		kind += "-"
	}
	for range 10 {
		if path, err = os.MkdirTemp("", folderPrefix+kind); err != nil {
			return "", nil, err
		}
		f, err := lockFolder(path)
		switch {
		case errors.Is(err, filelock.ErrHeld):
			// Another process sweeps at this moment, and took the folder for an abandoned one.
			continue
		case err != nil:
			_ = os.RemoveAll(path)
			return "", nil, err
		}
		folders.Lock()
		defer folders.Unlock()
		if folders.locks == nil {
			folders.locks = map[string]*os.File{}
		}
		folders.locks[path] = f
		return path, func() { removeFolder(path) }, nil
	}
	return "", nil, filelock.ErrHeld
}

// lockFolder marks a folder as in use. The file is nil where there are no locks: then nobody can
// tell later that the folder is abandoned.
func lockFolder(path string) (*os.File, error) {
	name := filepath.Join(path, lockName)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, filelock.ErrHeld
	}
	if err != nil {
		return nil, err
	}
	if err = filelock.Try(f); err == nil {
		var mine, there fs.FileInfo
		if mine, err = f.Stat(); err == nil {
			if there, err = os.Lstat(name); err != nil || !os.SameFile(mine, there) {
				err = filelock.ErrHeld // it was removed before it was locked
			}
		}
	}
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, os.Remove(name)
	}
	return nil, err
}

func removeFolder(path string) {
	folders.Lock()
	defer folders.Unlock()
	if f, ok := folders.locks[path]; ok {
		// Windows removes no open file.
		_ = f.Close()
		delete(folders.locks, path)
	}
	_ = os.RemoveAll(path)
}

// removeAll removes the folders of this process.
func removeAll() {
	folders.Lock()
	defer folders.Unlock()
	for path, f := range folders.locks {
		_ = f.Close()
		delete(folders.locks, path)
		_ = os.RemoveAll(path)
	}
}

// Sweep removes temporary folders of processes that were killed: those whose lock nobody holds.
func Sweep() { sweep(os.TempDir()) }

func sweep(dir string) {
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	names, _ := d.Readdirnames(mostNames)
	_ = d.Close()
	for _, name := range names {
		if strings.HasPrefix(name, folderPrefix) {
			abandoned(filepath.Join(dir, name))
		}
	}
}

// abandoned removes a folder if it is one of a process that has ended. Links are not followed:
// other users may write into the folder for temporary files, too.
func abandoned(path string) {
	if st, err := os.Lstat(path); err != nil || !st.IsDir() || !own(st) {
		return
	}
	lock := filepath.Join(path, lockName)
	before, err := os.Lstat(lock)
	if err != nil || !before.Mode().IsRegular() || !own(before) {
		return
	}
	f, err := os.OpenFile(lock, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if after, err := f.Stat(); err != nil || !os.SameFile(before, after) || filelock.Try(f) != nil {
		return
	}
	_ = f.Close()
	_ = os.RemoveAll(path)
}
