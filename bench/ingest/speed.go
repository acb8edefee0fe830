package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/tpurecords"
)

// speed measures imports.
type speed struct {
	program, samples string
	only             string // folder to make records in and do nothing else
	bytes            int64
	commands, n      int
}

func (s *speed) run(w io.Writer) error {
	if s.only != "" {
		return s.make()
	}
	dir, err := os.MkdirTemp("", "ingest")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if s.program == "" {
		s.program = filepath.Join(dir, "opmeter")
		build := exec.Command("go", "build", "-o", s.program, "github.com/opmeter/opmeter/cmd/opmeter")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("go build: %w", err)
		}
	}
	fmt.Fprintf(w, "%-34s %9s %19s %10s %9s\n", "record", "median", "least to most", "MB/s", "memory")
	// Records are made by another process: the memory of one that starts a program counts
	// as that program's.
	self, err := os.Executable()
	if err != nil {
		return err
	}
	records := filepath.Join(dir, "records")
	c := exec.Command(self, "-make", records, "-bytes", strconv.FormatInt(s.bytes, 10), "-commands", strconv.Itoa(s.commands))
	c.Stderr = os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("making records: %w", err)
	}
	if s.bytes > 0 {
		if err := s.measure(w, "ONNX Runtime profile", s.bytes, filepath.Join(records, profileName)); err != nil {
			return err
		}
	}
	if s.commands > 0 {
		name := fmt.Sprintf("%d commands to a page", s.commands)
		if err := s.measure(w, name, 0, filepath.Join(records, directoryName), "-o", filepath.Join(dir, "page.html"), "--open=false"); err != nil {
			return err
		}
	}
	return s.directories(w)
}

// Names of what is made.
const (
	profileName   = "profile.json"
	directoryName = "bmprofile_data-1"
)

// make makes records in a folder.
func (s *speed) make() error {
	if err := os.Mkdir(s.only, 0o777); err != nil {
		return err
	}
	if s.bytes > 0 {
		if err := runtimeProfile(filepath.Join(s.only, profileName), s.bytes); err != nil {
			return err
		}
	}
	if s.commands > 0 {
		return processorRecords(filepath.Join(s.only, directoryName), s.commands)
	}
	return nil
}

// processorRecords makes a profile directory of a tensor processor.
func processorRecords(dir string, commands int) error {
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	for name, data := range tpurecords.Make(tpurecords.Options{Commands: commands, Small: true, LayerSize: 2000}).Files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// directories imports the sample directories.
func (s *speed) directories(w io.Writer) error {
	root := s.samples
	if root == "" {
		root = filepath.Join(material.Dir(), "raw", "bmprofile")
	}
	entries, err := os.ReadDir(root)
	if errors.Is(err, os.ErrNotExist) && s.samples == "" {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() || e.Name() == "reference_output" {
			continue
		}
		if err := s.measure(w, e.Name(), 0, filepath.Join(root, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// measure imports a record several times and prints a line.
func (s *speed) measure(w io.Writer, name string, bytes int64, args ...string) error {
	var times []time.Duration
	peak := int64(0)
	for range s.n {
		c := exec.Command(s.program, append([]string{"import"}, args...)...)
		c.Env = append(os.Environ(), "GOMAXPROCS=1")
		c.Stderr = os.Stderr
		at := time.Now()
		if err := c.Run(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		times = append(times, time.Since(at))
		peak = max(peak, resident(c.ProcessState))
	}
	slices.Sort(times)
	mid := times[len(times)/2]
	rate := ""
	if bytes > 0 {
		rate = fmt.Sprintf("%.0f", float64(bytes)/1e6/mid.Seconds())
	}
	if len(name) > 34 {
		name = name[:34]
	}
	ms := func(d time.Duration) string { return fmt.Sprintf("%.0f ms", float64(d)/1e6) }
	_, err := fmt.Fprintf(w, "%-34s %9s %19s %10s %6d MB\n", name, ms(mid), ms(times[0])+" to "+ms(times[len(times)-1]), rate, peak/1e6)
	return err
}

// runtimeProfile writes a profile of many inferences of one model, as ONNX Runtime 1.30 does:
// about 700 bytes an event.
func runtimeProfile(file string, size int64) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	n, ts := int64(0), int64(50_000)
	put := func(format string, args ...any) {
		k, _ := fmt.Fprintf(w, format, args...) // Flush returns the first error
		n += int64(k)
	}
	put("[\n{\"cat\" : \"Session\",\"pid\" :7,\"tid\" :7,\"dur\" :3370,\"ts\" :2,\"ph\" : \"X\",\"name\" :\"model_loading_uri\",\"args\" : {}},\n")
	put("{\"cat\" : \"Session\",\"pid\" :7,\"tid\" :7,\"dur\" :17541,\"ts\" :3414,\"ph\" : \"X\",\"name\" :\"session_initialization\",\"args\" : {}}")
	for run := 0; n < size; run++ {
		begin := ts
		for node := range 66 {
			dur := int64(20 + (node*37+run*13)%200)
			put(",\n{\"cat\" : \"Node\",\"pid\" :7,\"tid\" :7,\"dur\" :%d,\"ts\" :%d,\"ph\" : \"X\",\"name\" :\"model/block_%d/Conv_%d_nchwc_kernel_time\",\"args\" : {\"thread_scheduling_stats\" : \"\",\"provider\" : \"CPUExecutionProvider\",\"mem_bytes_requested_in_use\" : \"3756416\",\"output_type_shape\" : [{\"float\":[1,64,111,111]}],\"node_index\" : \"%d\",\"parameter_size\" : \"7168\",\"mem_in_use_peak\" : \"5243008\",\"mem_arena_held\" : \"5243008\",\"op_name\" : \"Conv\",\"activation_size\" : \"602112\",\"mem_bytes_in_use\" : \"5243008\",\"mem_arena_held_delta\" : \"4194304\",\"mem_requested_in_use_delta\" : \"3154176\",\"input_type_shape\" : [{\"float\":[1,3,224,224]},{\"float\":[64,3,3,3]},{\"float\":[64]}],\"output_size\" : \"3154176\",\"mem_in_use_delta\" : \"4194304\"}}", dur, ts, node/4, node, 200+node)
			ts += dur + 3
		}
		put(",\n{\"cat\" : \"Session\",\"pid\" :7,\"tid\" :7,\"dur\" :%d,\"ts\" :%d,\"ph\" : \"X\",\"name\" :\"SequentialExecutor::Execute\",\"args\" : {}}", ts-begin-2, begin)
		put(",\n{\"cat\" : \"Session\",\"pid\" :7,\"tid\" :7,\"dur\" :%d,\"ts\" :%d,\"ph\" : \"X\",\"name\" :\"model_run\",\"args\" : {}}", ts-begin+5, begin-2)
		ts += 50
	}
	put("\n]\n")
	return errors.Join(w.Flush(), f.Close())
}
