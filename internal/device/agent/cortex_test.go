package agent

import (
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// cores are those for which the header's size is bounded, with their options.
var cores = []string{"cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55"}

// TestSize holds the agent below 4 KB of code and 1 KB of memory, without a library.
func TestSize(t *testing.T) {
	t.Parallel()
	source := filepath.Join(t.TempDir(), "agent.c")
	write(t, source, "#define OPMETER_IMPLEMENTATION\n#include \"opmeter.h\"\n")
	for _, core := range cores {
		object := filepath.Join(t.TempDir(), core+".o")
		compile(t, "arm-none-eabi-gcc", append([]string{"-std=c99", "-mcpu=" + core, "-mthumb", "-Os", "-ffreestanding", "-I", firmware, "-c", source, "-o", object}, warnings...)...)
		out, err := exec.Command(tool(t, "arm-none-eabi-size"), object).Output()
		if err != nil {
			t.Fatal(err)
		}
		f := strings.Fields(string(out)) // text data bss dec hex filename, twice
		if len(f) < 9 {
			t.Fatalf("%q", out)
		}
		text, _ := strconv.Atoi(f[6])
		data, _ := strconv.Atoi(f[7])
		bss, _ := strconv.Atoi(f[8])
		// The stack is what the deepest call takes, below 200 bytes.
		if text < 1000 || text+data >= 4096 || data+bss+200 >= 1024 {
			t.Errorf("%s: %d bytes of code, %d of data, %d of memory", core, text, data, bss)
		}
		if out, err := exec.Command(tool(t, "arm-none-eabi-nm"), "-u", object).Output(); err != nil || len(strings.TrimSpace(string(out))) != 0 {
			t.Errorf("%s: needs %q (%v)", core, out, err)
		}
		t.Logf("%s: %d bytes of code, %d of memory", core, text+data, data+bss)
	}
}

// TestCortex runs the agent on an emulated Cortex-M3 that counts instructions: what it costs in an
// operator, and its counter around the end of a round, with a SysTick that the agent starts and
// with one of short rounds that runs already; and as code for a Cortex-M0+, whose instructions are
// among those of the M3.
func TestCortex(t *testing.T) {
	t.Parallel()
	qemu := tool(t, "qemu-system-arm")
	for _, x := range []struct{ name, core, round string }{{"own", "cortex-m3", "-DOWN"}, {"found", "cortex-m3", "-DROUND=10000"}, {"small", "cortex-m0plus", "-DROUND=10000"}} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			exe := filepath.Join(t.TempDir(), "cortex.elf")
			args := append([]string{
				"-std=c99", "-mcpu=" + x.core, x.round, "-mthumb", "-Os", "-ffreestanding", "-nostdlib", "-I", firmware, "-T", filepath.Join(firmware, "test", "cortex.ld"),
				filepath.Join(firmware, "test", "cortex.c"), "-o", exe,
			}, warnings...)
			compile(t, "arm-none-eabi-gcc", append(args, "-lgcc")...)
			runs, memory := emulate(t, exec.Command(qemu, "-M", "mps2-an385", "-nographic", "-monitor", "none", "-serial", "stdio", "-icount", "shift=0", "-kernel", exe))
			if len(memory) != 1 || memory[0] != (Memory{"wrong readings", 0}) {
				t.Errorf("readings around the end of a round: %v", memory)
			}
			var sum, n float64
			for _, r := range runs {
				if r.Partial || r.Wrong {
					t.Errorf("inference %d: %+v", r.Number, r)
				}
				for _, o := range r.Ops {
					switch o.Index {
					case 0:
						sum += float64(o.Counts)
						n += float64(o.Calls)
					case 1: // 40000 instructions in 1000 ticks, ten times; the agent may add 5 ticks to each
						if o.Calls != 10 || o.Counts < 10000 || o.Counts > 10050 {
							t.Errorf("inference %d: %+v", r.Number, o)
						}
					case 2: // 100000 ticks, over ten rounds
						if o.Counts < 100000 || o.Counts > 100050 {
							t.Errorf("over many rounds: %+v", o)
						}
					}
				}
			}
			if cost := sum / n * 40; !(n == 800 && cost > 0 && cost < 200) {
				t.Errorf("%g instructions in an empty operator, mean of %g", cost, n)
			} else {
				t.Logf("%.1f instructions of the agent in an operator", cost)
			}
		})
	}
}

// TestUnknownProcessor stops the compiler where no counter is known, with what to do.
func TestUnknownProcessor(t *testing.T) {
	t.Parallel()
	source := filepath.Join(t.TempDir(), "agent.c")
	write(t, source, "#define OPMETER_IMPLEMENTATION\n#include \"opmeter.h\"\n")
	args := []string{"-std=c99", "-mcpu=cortex-a7", "-ffreestanding", "-I", firmware, "-c", source, "-o", filepath.Join(t.TempDir(), "agent.o")}
	out, err := exec.Command(tool(t, "arm-none-eabi-gcc"), args...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "define OPMETER_NO_COUNTER and set config.now") {
		t.Errorf("%v: %s", err, out)
	}
	compile(t, "arm-none-eabi-gcc", append(append(args, "-DOPMETER_NO_COUNTER"), warnings...)...)
}

// TestKernel runs the agent beside a kernel that owns SysTick: every round still has its flag when
// the kernel's handler looks, and operators longer than a round come out right as long as someone
// reads the counter in each. With the hooks of a scheduler what other threads do is in no figure.
func TestKernel(t *testing.T) {
	t.Parallel()
	qemu := tool(t, "qemu-system-arm")
	for _, x := range []struct {
		name, round, tasks string
	}{{"flag", "-DROUND=10000", "-DKERNEL"}, {"tasks", "-DROUND=4000", "-DOPMETER_TASKS"}} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			exe := filepath.Join(t.TempDir(), "kernel.elf")
			args := append([]string{
				"-std=c99", "-mcpu=cortex-m3", x.round, "-DKERNEL=1", "-mthumb", "-Os", "-ffreestanding", "-nostdlib", "-I", firmware, "-T", filepath.Join(firmware, "test", "cortex.ld"),
				filepath.Join(firmware, "test", "cortex.c"), "-o", exe,
			}, warnings...)
			if x.name == "tasks" {
				args = append(args, x.tasks)
			}
			compile(t, "arm-none-eabi-gcc", append(args, "-lgcc")...)
			runs, memory := emulate(t, exec.Command(qemu, "-M", "mps2-an385", "-nographic", "-monitor", "none", "-serial", "stdio", "-icount", "shift=0", "-kernel", exe))
			if len(memory) != 1 || memory[0] != (Memory{"lost rounds", 0}) {
				t.Errorf("rounds without their flag: %v", memory)
			}
			for _, r := range runs {
				if r.Partial || r.Wrong {
					t.Errorf("inference %d: %+v", r.Number, r)
				}
				for _, o := range r.Ops {
					// 40000 instructions in 1000 ticks, ten times; handler and agent may add
					// 20 ticks to each.
					if o.Index == 1 && (o.Calls != 10 || o.Counts < 10000 || o.Counts > 10200) {
						t.Errorf("inference %d: %+v", r.Number, o)
					}
				}
			}
		})
	}
}

// emulate runs a program until it is done, and ends it.
func emulate(t *testing.T, cmd *exec.Cmd) (runs []*Run, memory []Memory) {
	t.Helper()
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe() // held open: the emulator ends with it
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	limit := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	defer limit.Stop()
	done := false
	s := NewStream(func(e Event) {
		switch {
		case e.Run != nil:
			runs = append(runs, e.Run)
		case e.Memory != nil:
			memory = append(memory, *e.Memory)
		case e.Problem != nil:
			t.Errorf("problem %+v", e.Problem)
		case e.Done:
			done = true
		}
	})
	p := make([]byte, 4096)
	for err = nil; err == nil && !done; {
		var n int
		n, err = pipe.Read(p)
		s.Feed(p[:n], time.Time{})
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if !done {
		t.Fatalf("ended before the program was through, after %d inferences: %v", len(runs), err)
	}
	if s.Lost != (Lost{}) {
		t.Errorf("lost %+v", s.Lost)
	}
	return runs, memory
}

// TestHost runs the agent with this computer's clock, in C and in C++ behind the adapter for
// TensorFlow Lite Micro, and takes its profile.
func TestHost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := filepath.Join(dir, "host")
	compile(t, "cc", append([]string{"-std=gnu99", "-O1", "-I", firmware, filepath.Join(firmware, "test", "host.c"), "-o", c}, warnings...)...)
	out, err := exec.Command(c).Output()
	if err != nil {
		t.Fatal(err)
	}
	var got Outputs
	p, err := measure(t, &tape{cutUp(out, 100), io.EOF}, rules(20), Options{Output: got.Add})
	if p == nil {
		t.Fatal(err)
	}
	a, b, whole := p.Layers[0].Latency, p.Layers[1].Latency, p.Totals.Latency
	if len(p.Layers) != 2 || p.Layers[0].Op != "CONV_2D" || p.Layers[1].Op != "SOFTMAX" || a == nil || b == nil || whole == nil {
		t.Fatalf("%+v", p.Layers)
	}
	// The clock may be coarse, and it goes on.
	if !(*a.Median > 0 && *b.Median >= 0 && *whole.Max >= *a.Min+*b.Min) || *p.Memory.ArenaBytes != 2048 || p.Target.ID != "this computer" || finding(p, "agent.output") == "" {
		t.Errorf("%g s, %g s, %g s", *a.Median, *b.Median, *whole.Median)
	}
	if len(got.List) != 1 || string(got.List[0].Bytes) != "result" {
		t.Errorf("%+v", got.List)
	}

	write(t, filepath.Join(dir, "tensorflow/lite/micro/micro_profiler_interface.h"), standIn)
	cc := filepath.Join(dir, "tflm")
	compile(t, "c++", append([]string{"-std=c++17", "-O1", "-I", firmware, "-I", dir, filepath.Join(firmware, "test", "tflm.cc"), "-o", cc}, warnings...)...)
	if out, err = exec.Command(cc).Output(); err != nil {
		t.Fatal(err)
	}
	p, err = measure(t, &tape{cutUp(out, 100), io.EOF}, rules(3), Options{})
	if p == nil {
		t.Fatal(err)
	}
	var ops []string
	for i := range p.Layers {
		ops = append(ops, p.Layers[i].Op)
	}
	if strings.Join(ops, " ") != "CONV_2D DEPTHWISE_CONV_2D CONV_2D SOFTMAX" {
		t.Errorf("layers %v", ops)
	}
}

// standIn declares what the adapter needs of TensorFlow Lite Micro.
const standIn = `#include <cstdint>
namespace tflite {
class MicroProfilerInterface {
 public:
  virtual ~MicroProfilerInterface() {}
  virtual uint32_t BeginEvent(const char* tag) = 0;
  virtual void EndEvent(uint32_t event_handle) = 0;
};
}  // namespace tflite
`
