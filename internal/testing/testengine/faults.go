package testengine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/external"
)

// What goes wrong.
type What string

// Faults.
const (
	Crash  What = "crash"  // a fault in memory
	Abort  What = "abort"  // what the C library's abort does
	Kill   What = "kill"   // as somebody from outside does
	Exit   What = "exit"   // ends the process with status 0
	Exit3  What = "exit3"  // ends it with another status
	Hang   What = "hang"   // does not come back, and does nothing
	Spin   What = "spin"   // does not come back, and computes
	Error  What = "error"  // an error of the engine
	Reject What = "reject" // the model is refused
	Panic  What = "panic"  // a fault of the binding
	Print  What = "print"  // writes garbage to standard output
	Scrawl What = "scrawl" // writes garbage to whatever file is open, the pipe as well
	Flood  What = "flood"  // writes megabytes to standard error
	Fork   What = "fork"   // starts a process that stays
	// the same, in a session of its own that holds standard output and error
	Escape  What = "escape"
	Eat     What = "eat"     // takes memory without an end
	Threads What = "threads" // starts threads that compute without an end
	Shut    What = "shut"    // closes every file
	Nap     What = "nap"     // takes half a second
)

// floodBytes is what [Flood] writes.
const floodBytes = 8 << 20

// happen does it.
func (f *Fault) happen() error {
	pid := os.Getpid()
	defer func() {
		if f.File != "" && (f.What == Fork || f.What == Escape) {
			_ = os.WriteFile(f.File, fmt.Append(nil, pid), 0o600)
		}
	}()
	if f.File != "" && f.What != Fork && f.What != Escape {
		_ = os.WriteFile(f.File, fmt.Append(nil, pid), 0o600)
	}
	switch f.What {
	case Crash, Abort, Kill:
		end(f.What)
	case Exit:
		os.Exit(0)
	case Exit3:
		os.Exit(3)
	case Hang:
		for {
			time.Sleep(time.Hour)
		}
	case Spin:
		for {
			runtime.Gosched()
		}
	case Error:
		return errors.New("the fake engine does not feel like it")
	case Reject:
		return external.Errorf(external.Rejected, "Fake Engine refuses the model: Relu is not to its liking")
	case Panic:
		var nothing []int
		_ = nothing[len(os.Args)]
	case Print:
		fmt.Println(strings.Repeat("garbage ", 1000))
	case Scrawl:
		scrawl()
	case Flood:
		line := append(bytes.Repeat([]byte("warning "), 1023), "the end\n"...)
		for n := 0; n < floodBytes; n += len(line) {
			_, _ = os.Stderr.Write(line)
		}
	case Fork, Escape:
		c := exec.Command("sleep", "1000")
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if f.What == Escape {
			escape(c)
		}
		if err := c.Start(); err != nil {
			return err
		}
		pid = c.Process.Pid
	case Eat:
		var kept [][]byte
		for {
			b := make([]byte, 16<<20)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			kept = append(kept, b)
			_ = kept
		}
	case Threads:
		for range 4 {
			go func() {
				for {
					Compute(1 << 20)
					runtime.Gosched() // a child's runtime stops its own threads nowhere else
				}
			}()
		}
	case Shut:
		shut()
	case Nap:
		time.Sleep(time.Second / 2)
	}
	return nil
}
