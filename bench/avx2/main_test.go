//go:build linux && amd64

package main

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/cpu"
)

// TestHides runs this test in a child, whose child sees no AVX-512 either.
func TestHides(t *testing.T) {
	const variable = "OPMETER_TEST_AVX2"
	if os.Getenv(variable) != "" {
		if !cpu.X86.HasAVX2 || cpu.X86.HasAVX512F || cpu.X86.HasAVX512VNNI || cpu.X86.HasAMXTile {
			t.Error("the processor shows more or less than AVX2")
		}
		return
	}
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Fatal(err)
	}
	if flags := string(text); !strings.Contains(flags, " cpuid_fault") || !strings.Contains(flags, " avx2") {
		t.Skip("the processor has no AVX2, or CPUID cannot fault")
	}
	t.Setenv(variable, "1")
	code, err := run([]string{"/bin/sh", "-c", `"$0" -test.run=^TestHides$ && exit 7`, os.Args[0]})
	if err != nil || code != 7 {
		t.Errorf("status %d, %v; want 7", code, err)
	}
}

func TestNoCommand(t *testing.T) {
	if code, err := run(nil); code != 2 || err == nil {
		t.Errorf("status %d, %v", code, err)
	}
}
