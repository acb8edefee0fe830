package port

import (
	"os"
	"sync"
)

// Recording is a file that takes what is received. Every write goes to the system before
// it returns, so that nothing is lost when the process is killed; Close brings it to the
// disk.
type Recording struct {
	mu sync.Mutex
	f  *os.File
	n  int64
}

// CreateRecording creates a file for [Options.Record]. One of that name that is there is an
// [os.ErrExist]: it may be the only record of another run.
func CreateRecording(path string) (*Recording, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	return &Recording{f: f}, nil
}

// Write appends bytes.
func (r *Recording) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, err := r.f.Write(p)
	r.n += int64(n)
	return n, err
}

// Size is how many bytes have been written.
func (r *Recording) Size() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}

// Name is the path of the file.
func (r *Recording) Name() string { return r.f.Name() }

// Close ends the file. Its error tells that not all of it is on the disk.
func (r *Recording) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if st, err := r.f.Stat(); err == nil && st.Mode().IsRegular() {
		if err := r.f.Sync(); err != nil {
			r.f.Close()
			return err
		}
	}
	return r.f.Close()
}
