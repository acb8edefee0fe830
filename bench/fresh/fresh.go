// Package fresh profiles models in processes of their own: benchmarks of what figures of different
// processes have in common call themselves for it.
package fresh

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/profile"
)

// Examples returns the files of examples by their names.
func Examples(names ...string) (files []string) {
	for _, n := range names {
		files = append(files, filepath.Join(material.Root(), "examples", n+".yaml"))
	}
	return files
}

// Ask runs this program again, to profile a model for a time, and decodes what it writes with
// [Answer] into a result. The program must call Answer where its flag child names a model.
func Ask(model string, d time.Duration, result any) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	b, err := exec.Command(self, "-child", model, "-time", d.String()).Output()
	if err != nil {
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			return fmt.Errorf("%s: %s", model, strings.TrimSpace(string(e.Stderr)))
		}
		return err
	}
	if err := json.Unmarshal(b, result); err != nil {
		return fmt.Errorf("%s: %w", model, err)
	}
	return nil
}

// Answer profiles a model for a time and writes what a function makes of the profile.
func Answer[T any](model string, d time.Duration, result func(*profile.Profile) T) error {
	m, err := opmeter.Open(model)
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }()
	p, err := opmeter.Profile(context.Background(), m, opmeter.Options{Time: d, Warmup: 150 * time.Millisecond, Inputs: opmeter.Inputs{Seed: 1}})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result(p))
}
