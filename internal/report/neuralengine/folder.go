package neuralengine

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/base/filelock"
	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/profile"
)

// Folders that the profiler makes in the current one.
const (
	Folder      = "engine_profiling"
	tableFolder = "profiling_csv"
	traceFolder = "profiling_trace"
)

// FolderOptions says how files are numbered.
type FolderOptions struct {
	// Instances is the number of processes that run the model, as INST_NUM has it; 1 or less for
	// one.
	Instances int
	// Started is when this process began, Now the time that names its files.
	Started, Now time.Time
}

// mostFiles bounds the numbers of files of one second.
const mostFiles = 100_000

// Write writes table and trace of each instance below dir/engine_profiling and returns the
// names of the files, the common part of their names first.
//
// Instances are numbered from 0. One that belongs to several processes goes on after those
// that ended while it ran; nothing is ever written over, whatever Instances says and however
// many processes end at the same time: a file is made only if absent, and the
// next number is taken where there is one. What a crash leaves behind changes nothing:
// the folder is locked by the system, for as long as files are being written.
func Write(dir string, ps []*profile.Profile, o FolderOptions) (stem string, files []string, err error) {
	if slices.ContainsFunc(ps, func(p *profile.Profile) bool { return len(calls(p)) == 0 }) {
		return "", nil, ErrNoTimeline
	}
	root := filepath.Join(dir, Folder)
	for _, d := range []string{root, filepath.Join(root, tableFolder), filepath.Join(root, traceFolder)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return "", nil, err
		}
	}
	if f, err := os.Open(root); err == nil {
		// Where it cannot be had, as on some network file systems, work goes on without: files
		// are made only if absent, and at worst two instances of different seconds
		// have one number.
		_ = filelock.Wait(f)
		defer f.Close()
	}
	stamp, n := o.place(root, len(ps))
	for _, p := range ps {
		var made []string
		if n, made, err = instance(root, stamp, n, p); err != nil {
			return "", files, err
		}
		files = append(files, made...)
		n++
	}
	return filepath.Join(root, stamp), files, nil
}

// instance writes the files of one instance under the first free number from n on.
func instance(root, stamp string, n int, p *profile.Profile) (int, []string, error) {
	for ; n < mostFiles; n++ {
		name := stamp + "_" + strconv.Itoa(n)
		table, trace := filepath.Join(root, tableFolder, name+".csv"), filepath.Join(root, traceFolder, name+".json")
		err := fresh(table, func(w io.Writer) error { return OwnCSV(w, p) })
		if err == nil {
			if err = fresh(trace, func(w io.Writer) error { return Trace(w, p) }); err == nil {
				return n, []string{table, trace}, nil
			}
			_ = os.Remove(table)
		}
		if !errors.Is(err, fs.ErrExist) {
			return n, nil, err
		}
	}
	return n, nil, fmt.Errorf("%s: there are %d files of this second", filepath.Join(root, stamp), mostFiles)
}

// fresh writes a file that must not exist; nothing is left of one that fails.
func fresh(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(f)
	if err = errors.Join(write(b), b.Flush(), f.Close()); err != nil {
		_ = os.Remove(path)
	}
	return err
}

var fileName = lazyregexp.New(`^(profiling_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d)_(\d{1,6})\.csv$`)

// file is one that there is.
type file struct {
	stamp string
	n     int
	end   time.Time
}

// place is the first part of the names of the files, and the first number. An instance goes on
// where the last ones are of the same run: where there are fewer of them than processes run the
// model, and the last of them ended after this one had begun. A run of several
// instances has a second of its own, so that whoever reads the files can tell runs apart.
func (o *FolderOptions) place(root string, count int) (stamp string, n int) {
	name := func(t time.Time) string { return "profiling_" + t.Format("2006-01-02_15-04-05") }
	stamp = name(o.Now)
	if o.Instances <= 1 && count == 1 {
		return stamp, 0
	}
	all := tables(root)
	if len(all) == 0 {
		return stamp, 0
	}
	last, there := all[len(all)-1], 0
	for i, f := range all {
		if i == 0 || f.n <= all[i-1].n {
			there = 0
		}
		there++
	}
	const coarse = 50 * time.Millisecond // systems round the times of files
	if count == 1 && there < o.Instances && !last.end.Before(o.Started.Add(-coarse)) {
		return max(stamp, last.stamp), last.n + 1
	}
	taken := func(f file) bool { return f.stamp == stamp }
	for k := 1; slices.ContainsFunc(all, taken) && k < mostFiles; k++ {
		stamp = name(o.Now.Add(time.Duration(k) * time.Second))
	}
	return stamp, 0
}

// tables lists the tables that there are, in the order of their names and numbers.
func tables(root string) []file {
	list, err := os.ReadDir(filepath.Join(root, tableFolder))
	if err != nil {
		return nil
	}
	var all []file
	for _, e := range list {
		m := fileName.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		n, err := strconv.Atoi(m[2])
		if st, also := e.Info(); err == nil && also == nil {
			all = append(all, file{m[1], n, st.ModTime()})
		}
	}
	sorting.Func(all, func(a, b file) int { return cmp.Or(strings.Compare(a.stamp, b.stamp), a.n-b.n) })
	return all
}
