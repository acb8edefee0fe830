package capture

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/compiler"
)

// Kind is the kind of a file of a directory.
type Kind uint8

// Kinds of files.
const (
	Other     Kind = iota
	LogFile        // compiler's log with the lines of the runtime around it
	StepFile       // one subnet's run
	Stream         // command stream
	Estimates      // estimated cycles
	Places         // tensor_location.json
	Mlir           // final.mlir
	DriverLog      // driver's recorder
	CoreFile       // BM1690: one core's records without a model
	PortFile       // BM1690: one chip-to-chip port
)

var (
	stepName   = lazyregexp.New(`^iter(\d{1,9})\.profile$`)
	streamName = lazyregexp.New(`^cmd_([0-9a-f]{1,16})(?:_(\d{1,3}))?_(\d{1,2})\.dat$`)
	driverName = lazyregexp.New(`^bmlib.*\.profile$`)
	coreName   = lazyregexp.New(`^cdmlib(\d{1,4})_(\d{1,9})\.profile$`)
	portName   = lazyregexp.New(`^cdma(\d{1,4})_(\d{1,3})\.profile$`)
)

// KindOf returns the kind of a file by its name and its beginning.
func KindOf(f *record.File) Kind {
	blocks := block.Plausible(f.Head)
	switch {
	case blocks && stepName.MatchString(f.Name):
		return StepFile
	case len(f.Head) > 0 && streamName.MatchString(f.Name):
		return Stream
	case blocks && coreName.MatchString(f.Name):
		return CoreFile
	case blocks && portName.MatchString(f.Name):
		return PortFile
	case blocks && driverName.MatchString(f.Name):
		return DriverLog
	case compiler.IsLocations(f.Head):
		return Places
	case compiler.IsProgram(f.Head):
		return Mlir
	case compiler.IsEstimate(f.Head):
		return Estimates
	case strings.HasSuffix(f.Name, ".profile") && compiler.IsLog(f.Head):
		return LogFile
	}
	return Other
}

// numbers returns the submatches of a pattern in a name as numbers, -1 for missing ones.
func numbers(re *lazyregexp.Regexp, name string) []int {
	var out []int
	for _, s := range re.FindStringSubmatch(name)[1:] {
		n, err := strconv.Atoi(s)
		if err != nil {
			n = -1
		}
		out = append(out, n)
	}
	return out
}

// StreamKey identifies a command stream by its address in memory, its core (-1 if the name has
// none) and the number of its engine.
type StreamKey struct {
	Base         uint64
	Core, Engine int
}

// StreamName parses the name cmd_ADDRESS_CORE_ENGINE.dat, or cmd_ADDRESS_ENGINE.dat of older
// runtimes.
func StreamName(name string) (k StreamKey, ok bool) {
	m := streamName.FindStringSubmatch(name)
	if m == nil {
		return k, false
	}
	n := numbers(streamName, name)
	base, err := strconv.ParseUint(m[1], 16, 64)
	return StreamKey{base, n[1], n[2]}, err == nil
}

// texts reads the files of the compiler in parallel. A file that fails is a fault.
func (r *Recording) texts(files []*record.File) (faults []error) {
	r.Log = &compiler.Log{}
	r.streams = map[StreamKey]*record.File{}
	var log, estimate, places, program *record.File
	for _, f := range files {
		switch KindOf(f) {
		case LogFile:
			// global.profile contains the log of the model that ran. The compiler writes others.
			r.choose(&log, f, "global.profile", "further compiler logs")
		case Estimates:
			r.choose(&estimate, f, "net_stat.sim", "further estimates")
		case Places:
			places = f
		case Mlir:
			program = f
		case Stream:
			if k, ok := StreamName(f.Name); ok {
				r.streams[k] = f
			}
		}
	}
	var errs [4]error
	var wait sync.WaitGroup
	for i, x := range [...]struct {
		f    *record.File
		read func() error
	}{
		{log, func() (err error) { r.Log, err = with(log, compiler.ReadLog); return err }},
		{estimate, func() (err error) { r.Estimate, err = with(estimate, compiler.ReadEstimate); return err }},
		{places, func() (err error) { r.Locations, err = with(places, compiler.ReadLocations); return err }},
		{program, func() (err error) { r.Program, err = with(program, compiler.ReadProgram); return err }},
	} {
		if x.f != nil {
			r.Files++
			wait.Go(func() { errs[i] = x.read() })
		}
	}
	wait.Wait()
	faults = slices.DeleteFunc(errs[:], func(err error) bool { return err == nil })
	if r.Log.Dropped > 0 {
		r.Dropped.Add("lines of the compiler's log beyond what is kept", r.Log.Dropped)
	}
	if e := r.Estimate; e != nil {
		r.Dropped.Add("items of the compiler's estimate that are not as expected", e.Bad)
		r.Dropped.Add("items of the compiler's estimate beyond what is kept", e.Dropped)
	}
	if l := r.Locations; l != nil {
		r.Dropped.Add("entries of tensor_location.json that are not as expected", l.Bad)
		r.Dropped.Add("entries of tensor_location.json beyond what is kept", l.Dropped)
	}
	return faults
}

// choose selects the file with a name, else the first one.
func (r *Recording) choose(have **record.File, f *record.File, name, more string) {
	if *have != nil {
		r.Dropped.Add(more, 1)
	}
	if *have == nil || f.Name == name {
		*have = f
	}
}

func with[T any](f *record.File, read func(r io.Reader) (T, error)) (T, error) {
	in, err := f.Open()
	if err != nil {
		var none T
		none, _ = read(strings.NewReader(""))
		return none, &record.FileError{Path: f.Path, Err: err}
	}
	defer func() { _ = in.Close() }() // it was only read
	c := &counted{r: in}
	v, err := read(c)
	if err != nil {
		return v, &record.FileError{Path: f.Path, Place: fmt.Sprintf("byte %d", c.n), Err: err}
	}
	return v, nil
}
