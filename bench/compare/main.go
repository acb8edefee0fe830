// Command compare shows how often comparisons of profiles are wrong, and what slow-downs they find.
//
//	go run ./bench/compare -collect DIR [-n 40] [-time 700ms] [MODEL ...]
//	go run ./bench/compare -pool DIR [-draws 1000] [-json FILE]
//
// The first form profiles models, each time in a process of its own, and saves the profiles. The
// second draws from them.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/opmeter/opmeter/bench/fresh"
	"github.com/opmeter/opmeter/profile"
)

// usual are the models that are taken where none are named.
var usual = []string{"ds_cnn", "mobilenet_v1", "resnet8", "transformer"}

func main() {
	collectTo := flag.String("collect", "", "profile the models and save the profiles in this folder")
	n := flag.Int("n", 40, "profiles of each model")
	d := flag.Duration("time", 700*time.Millisecond, "time for the measured runs of a profile")
	dir := flag.String("pool", "", "draw from the profiles of this folder")
	draws := flag.Int("draws", 1000, "comparisons of each kind")
	out := flag.String("json", "", "write all figures to a file")
	child := flag.String("child", "", "profile this model and write it: what the program calls itself for")
	flag.Parse()
	var err error
	switch {
	case *child != "":
		err = fresh.Answer(*child, *d, func(p *profile.Profile) *profile.Profile { return p })
	case *collectTo != "":
		err = collect(*collectTo, flag.Args(), *n, *d)
	case *dir != "":
		err = bench(*dir, *draws, *out)
	default:
		err = errors.New("use -collect or -pool")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// collect saves profiles of models as MODEL-NUMBER.opmeter. A round of all models follows the
// other: what changes slowly meets all alike.
func collect(dir string, models []string, n int, d time.Duration) error {
	if len(models) == 0 {
		models = fresh.Examples(usual...)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for i := range n {
		for _, m := range models {
			var raw json.RawMessage
			if err := fresh.Ask(m, d, &raw); err != nil {
				return err
			}
			p, err := profile.Decode(bytes.NewReader(raw))
			if err != nil {
				return err
			}
			name := strings.TrimSuffix(filepath.Base(m), filepath.Ext(m))
			if err := profile.Write(filepath.Join(dir, fmt.Sprintf("%s-%03d.opmeter", name, i)), p); err != nil {
				return err
			}
		}
	}
	return nil
}
