//go:build linux && amd64

// Command avx2 runs a command as if the processor had AVX2 and FMA but nothing newer: no AVX-512,
// no VNNI, no AMX. It limits all libraries of the command and of its children alike, also those
// that have no setting for that. Times are those of this processor.
//
//	go build -o avx2 ./bench/avx2
//	OPMETER_TEST_ENGINES=DIR ./avx2 ./latency -threads 1
//
// The instruction CPUID is made to fault (the kernel offers that on Intel since 2012, as
// cpuid_fault in /proc/cpuinfo), and this program answers it in its place.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

const archCPUID = 0x1012 // ARCH_SET_CPUID

// hidden are the bits to clear: leaf, sub-leaf, register (eax, ebx, ecx, edx), bits.
var hidden = []struct {
	leaf, sub uint32
	register  int
	bits      []uint
}{
	// AVX-512 F, DQ, IFMA, PF, ER, CD, BW, VL
	{7, 0, 1, []uint{16, 17, 21, 26, 27, 28, 30, 31}},
	// AVX-512 VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ; GFNI
	{7, 0, 2, []uint{1, 6, 8, 11, 12, 14}},
	// AVX-512 4VNNIW, 4FMAPS, VP2INTERSECT, FP16; AMX
	{7, 0, 3, []uint{2, 3, 8, 22, 23, 24, 25}},
	// AVX-VNNI, AVX-512 BF16, AMX-FP16, AVX-IFMA
	{7, 1, 0, []uint{4, 5, 21, 22, 23}},
	// AVX-VNNI-INT8, AVX-NE-CONVERT, AMX-COMPLEX, AVX-VNNI-INT16, AVX10, APX
	{7, 1, 3, []uint{4, 5, 8, 10, 19, 21}},
}

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "avx2:", err)
	}
	os.Exit(code)
}

// run traces a command, its threads and children until all have ended.
func run(args []string) (int, error) {
	if len(args) == 0 {
		return 2, fmt.Errorf("name a command: avx2 COMMAND [ARGUMENT ...]")
	}
	runtime.LockOSThread() // tracing belongs to a thread
	c := exec.Command(args[0], args[1:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.SysProcAttr = &unix.SysProcAttr{Ptrace: true}
	if err := c.Start(); err != nil {
		return 1, err
	}
	first := c.Process.Pid
	options := unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_EXITKILL
	known := map[int]bool{}
	code := 0
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WALL, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.ECHILD:
			return code, nil
		case err != nil:
			return 1, err
		}
		if !status.Stopped() {
			delete(known, pid)
			if pid == first {
				if code = status.ExitStatus(); status.Signaled() {
					code = 128 + int(status.Signal())
				}
			}
			continue
		}
		signal := status.StopSignal()
		switch {
		case !known[pid]: // begins: the first one at its exec, others with a stop
			known[pid] = true
			if pid == first {
				if err := unix.PtraceSetOptions(pid, options); err != nil {
					return 1, err
				}
				if err := fault(pid); err != nil {
					return 1, err
				}
			}
			if signal == unix.SIGSTOP || signal == unix.SIGTRAP {
				signal = 0
			}
		case signal == unix.SIGTRAP:
			// An exec gives the instruction back to the new program.
			if status.TrapCause() == unix.PTRACE_EVENT_EXEC {
				if err := fault(pid); err != nil {
					return 1, err
				}
			}
			if status.TrapCause() > 0 {
				signal = 0
			}
		case signal == unix.SIGSEGV:
			if answer(pid) {
				signal = 0
			}
		}
		// A thread that was killed meanwhile is reported by the next wait.
		_ = unix.PtraceCont(pid, int(signal))
	}
}

// fault has CPUID fault in a process that has just begun, by a system call in its place.
func fault(pid int) error {
	var before, r unix.PtraceRegs
	if err := unix.PtraceGetRegs(pid, &before); err != nil {
		return err
	}
	code := make([]byte, 2)
	if _, err := unix.PtracePeekText(pid, uintptr(before.Rip), code); err != nil {
		return err
	}
	if _, err := unix.PtracePokeText(pid, uintptr(before.Rip), []byte{0x0f, 0x05}); err != nil {
		return err
	}
	// After an exec the first step only leaves that system call, which sets a register.
	for range 2 {
		r = before
		r.Rax, r.Orig_rax, r.Rdi, r.Rsi = unix.SYS_ARCH_PRCTL, ^uint64(0), archCPUID, 0
		if err := unix.PtraceSetRegs(pid, &r); err != nil {
			return err
		}
		if err := unix.PtraceSingleStep(pid); err != nil {
			return err
		}
		var status unix.WaitStatus
		if _, err := unix.Wait4(pid, &status, unix.WALL, nil); err != nil {
			return err
		}
		if err := unix.PtraceGetRegs(pid, &r); err != nil {
			return err
		}
		if r.Rip == before.Rip+2 {
			break
		}
	}
	if r.Rax != 0 {
		return fmt.Errorf("CPUID cannot be made to fault here (error %d): a processor and a kernel with cpuid_fault are needed", -int64(r.Rax))
	}
	if _, err := unix.PtracePokeText(pid, uintptr(before.Rip), code); err != nil {
		return err
	}
	return unix.PtraceSetRegs(pid, &before)
}

// answer gives a thread that stands at CPUID what a processor with AVX2 answers.
func answer(pid int) bool {
	var r unix.PtraceRegs
	if unix.PtraceGetRegs(pid, &r) != nil {
		return false
	}
	code := make([]byte, 2)
	if n, err := unix.PtracePeekText(pid, uintptr(r.Rip), code); err != nil || n != 2 || code[0] != 0x0f || code[1] != 0xa2 {
		return false
	}
	leaf, sub := uint32(r.Rax), uint32(r.Rcx)
	var out [4]uint32
	out[0], out[1], out[2], out[3] = cpuid(leaf, sub)
	for _, h := range hidden {
		if h.leaf == leaf && h.sub == sub {
			for _, b := range h.bits {
				out[h.register] &^= 1 << b
			}
		}
	}
	r.Rax, r.Rbx, r.Rcx, r.Rdx = uint64(out[0]), uint64(out[1]), uint64(out[2]), uint64(out[3])
	r.Rip += 2
	return unix.PtraceSetRegs(pid, &r) == nil
}
