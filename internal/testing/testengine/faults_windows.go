package testengine

import (
	"os"
	"os/exec"
)

// end ends the process as the system does where it faults.
func end(What) { os.Exit(0xC0000005 & 0xff) }

func escape(*exec.Cmd) {}

func scrawl() { _, _ = os.Stdout.WriteString("this is not a message\n") }

func shut() {
	_ = os.Stdin.Close()
	_ = os.Stdout.Close()
}
