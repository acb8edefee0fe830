package flash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/internal/base/subprocess"
)

// Commander is the vendor's tool for the debug probe of its boards.
type Commander struct {
	// Path is the program.
	Path string
	// Serial is the serial number of the probe, "" if one board is connected.
	Serial string
}

// ErrNoCommander says that the vendor's tool was not found.
var ErrNoCommander = errors.New("the Simplicity Commander was not found in the PATH or in the usual folders of Simplicity Studio: name it with --commander, or write the image with -o and flash it by hand")

// names are the file names of the program.
var names = []string{"commander-cli", "commander"}

// Find searches for the tool in the PATH and in the folders of the vendor's installers.
func Find() (string, error) {
	for _, n := range names {
		if p, err := exec.LookPath(n); err == nil {
			return p, nil
		}
	}
	home, _ := os.UserHomeDir() // without one there are the other folders
	var folders []string
	switch runtime.GOOS {
	case "darwin":
		for _, n := range []string{"Commander-cli.app/Contents/MacOS", "Commander.app/Contents/MacOS"} {
			folders = append(folders, "/Applications/"+n, "/Applications/Simplicity Studio.app/Contents/Eclipse/developer/adapter_packs/commander/"+n)
		}
	case "windows":
		for _, root := range []string{os.Getenv("ProgramFiles"), os.Getenv("ProgramFiles(x86)"), `C:\SiliconLabs`} {
			if root != "" {
				folders = append(folders, filepath.Join(root, "Simplicity Commander"), filepath.Join(root, "SiliconLabs", "SimplicityStudio", "v5", "developer", "adapter_packs", "commander"),
					filepath.Join(root, "SimplicityStudio", "v5", "developer", "adapter_packs", "commander"))
			}
		}
	default:
		for _, root := range []string{home, "/opt"} {
			if root != "" {
				folders = append(folders, filepath.Join(root, "SimplicityStudio_v5", "developer", "adapter_packs", "commander"), filepath.Join(root, "commander"), filepath.Join(root, "commander-cli"), filepath.Join(root, "SimplicityCommander"))
			}
		}
	}
	for _, f := range folders {
		for _, n := range names {
			if runtime.GOOS == "windows" {
				n += ".exe"
			}
			p := filepath.Join(f, n)
			if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() && (runtime.GOOS == "windows" || st.Mode()&0o111 != 0) {
				return p, nil
			}
		}
	}
	return "", ErrNoCommander
}

// commandTime is the time limit of one call of the tool.
const commandTime = 3 * time.Minute

// run runs the tool and returns its output.
func (c *Commander) run(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	var file []string
	if n := len(args); args[0] == "flash" {
		args, file = args[:n-1:n-1], args[n-1:]
	}
	if c.Serial != "" {
		args = append(args, "--serialno", c.Serial)
	}
	args = append(args, file...)
	cmd := exec.CommandContext(ctx, c.Path, args...)
	cmd.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &limited{&out}, &limited{&out}
	err := subprocess.Run(cmd)
	text := out.String()
	if err != nil || strings.Contains(strings.ToLower(text), "error:") {
		advice := ""
		if strings.Contains(text, "more than one") {
			advice = " (several boards are connected: name the probe's number with --serialno)"
		}
		return text, fmt.Errorf("%s %s: %w%s", filepath.Base(c.Path), strings.Join(args, " "), cause(err, text), advice)
	}
	return text, nil
}

// cause returns the tool's error message, or why it did not run.
func cause(err error, text string) error {
	var last string
	for l := range strings.Lines(text) {
		if l = strings.TrimSpace(l); l != "" && (last == "" || strings.Contains(strings.ToLower(l), "error")) {
			last = l
		}
	}
	switch {
	case last == "":
		return err
	case err == nil:
		return errors.New(last)
	}
	return fmt.Errorf("%w: %s", err, last)
}

// limited keeps the beginning of a program's output.
type limited struct{ b *bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if room := 1<<20 - l.b.Len(); room > 0 {
		l.b.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

var (
	infoPart  = lazyregexp.New(`(?m)^\s*Part Number\s*:\s*(\w+)`)
	infoFlash = lazyregexp.New(`(?m)^\s*Flash Size\s*:\s*(\d{1,6}) kB`)
)

// Info reads the chip of the connected board.
func (c *Commander) Info(ctx context.Context) (Part, error) {
	text, err := c.run(ctx, "device", "info", "--device", "efr32")
	if err != nil {
		if text, err = c.run(ctx, "device", "info", "--device", "efm32"); err != nil {
			return Part{}, err
		}
	}
	m := infoPart.FindStringSubmatch(text)
	if m == nil {
		return Part{}, fmt.Errorf("%s tells no part number: name the chip with --part", filepath.Base(c.Path))
	}
	p, err := ParsePart(m[1])
	if err != nil {
		return Part{}, err
	}
	if m := infoFlash.FindStringSubmatch(text); m != nil {
		kilo, _ := strconv.Atoi(m[1]) // at most six digits
		p.Bytes = uint32(kilo) << 10
	}
	return p, nil
}

// Firmware programs a firmware and halts the processor.
func (c *Commander) Firmware(ctx context.Context, p Part, path string) error {
	args := []string{"flash", "--force", "--halt", "--device", p.Number}
	if strings.EqualFold(filepath.Ext(path), ".bin") {
		args = append(args, "--binary", "--address", fmt.Sprintf("0x%08X", p.Base))
	}
	_, err := c.run(ctx, append(args, path)...)
	return err
}

// Model programs a model's image and leaves the processor halted.
func (c *Commander) Model(ctx context.Context, p Part, i Image) error {
	dir, remove, err := subprocess.Folder("")
	if err != nil {
		return err
	}
	defer remove()
	path := filepath.Join(dir, "model.bin")
	if err := os.WriteFile(path, i.Data, 0o600); err != nil {
		return err
	}
	_, err = c.run(ctx, "flash", "--force", "--halt", "--device", p.Number, "--binary", "--address", fmt.Sprintf("0x%08X", i.Address), path)
	return err
}

// Reset restarts the processor.
func (c *Commander) Reset(ctx context.Context, p Part) error {
	_, err := c.run(ctx, "device", "reset", "--device", p.Number)
	return err
}
