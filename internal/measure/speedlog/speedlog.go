// Package speedlog remembers the speeds at which this computer ran earlier measurements. One
// process sees one speed: virtual machines and laptops keep another one for minutes.
package speedlog

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/opmeter/opmeter/internal/base/atomicfile"
)

const (
	most    = 32                  // speeds that are kept of a computer
	longest = 30 * 24 * time.Hour // age at which one is forgotten
	maxSize = 64 << 10            // size of the file that is still read
)

// Log is a file of speeds, a line for each: Unix time, computer, speed. Computers may share a home
// folder.
type Log struct {
	Path string
	// Computer tells computers apart, such as by name and processor.
	Computer string
}

// Default returns the user's log, in the folder for caches. Its path is empty, and it holds
// nothing, if that folder is missing.
func Default(processor string) Log {
	dir, err := os.UserCacheDir()
	if err != nil {
		return Log{}
	}
	name, _ := os.Hostname() // "" for an unnamed computer
	return Log{Path: filepath.Join(dir, "opmeter", "speeds"), Computer: name + " " + processor}
}

type entry struct {
	at       int64
	computer string
	speed    float64
}

// Add returns the earlier speeds of this computer, the oldest first, and adds one, unless it is 0.
// Nothing of the file is an error: a line that cannot be read is left out, a file that cannot be
// written remains.
func (l Log) Add(speed float64, now time.Time) []float64 {
	if l.Path == "" {
		return nil
	}
	h := fnv.New64a()
	io.WriteString(h, l.Computer) //nolint:errcheck // a hash takes all
	computer := strconv.FormatUint(h.Sum64(), 16)
	var earlier []float64
	var keep []entry
	for _, e := range l.read(now) {
		if keep = append(keep, e); e.computer == computer {
			earlier = append(earlier, e.speed)
		}
	}
	if !(speed > 0) {
		return earlier
	}
	keep = append(keep, entry{now.Unix(), computer, speed})
	own := len(earlier) + 1
	var b bytes.Buffer
	for _, e := range keep {
		if e.computer == computer && own > most {
			own--
			continue
		}
		fmt.Fprintf(&b, "%d %s %.4g\n", e.at, e.computer, e.speed)
	}
	if os.MkdirAll(filepath.Dir(l.Path), 0o700) == nil && b.Len() <= maxSize {
		write := func(w io.Writer) error { _, err := w.Write(b.Bytes()); return err }
		atomicfile.Many(l.Path, write) //nolint:errcheck // a cache
	}
	return earlier[max(0, len(earlier)-most):]
}

// read returns the entries of the file that are not too old.
func (l Log) read(now time.Time) (out []entry) {
	f, err := os.Open(l.Path)
	if err != nil {
		return nil
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSize))
	if err != nil {
		return nil
	}
	for line := range bytes.Lines(data) {
		fields := bytes.Fields(line)
		if len(fields) != 3 {
			continue
		}
		at, err1 := strconv.ParseInt(string(fields[0]), 10, 64)
		speed, err2 := strconv.ParseFloat(string(fields[2]), 64)
		age := now.Unix() - at
		if err1 == nil && err2 == nil && speed > 1e-3 && speed < 1e3 && age >= 0 && age < int64(longest/time.Second) {
			out = append(out, entry{at, string(fields[1]), speed})
		}
	}
	return out
}
