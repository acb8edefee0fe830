package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/base/subprocess"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/program"
	"github.com/opmeter/opmeter/internal/server/blob"
	"github.com/opmeter/opmeter/internal/server/queue"
	"github.com/opmeter/opmeter/internal/server/store"
)

// Result is what a job made.
type Result struct {
	// File is the profile in a folder of the caller.
	File string `json:"-"`
	// Hash is the SHA-256 of the file.
	Hash string `json:"hash"`
	// OutputFile is another file that the job wrote, a compressed model, "" for none. Output is its
	// SHA-256.
	OutputFile string `json:"-"`
	Output     string `json:"output,omitzero"`
	// Model is the SHA-256 of the model as the result says it, "" if unknown.
	Model   string         `json:"model,omitzero"`
	Series  store.Series   `json:"series"`
	Figures []store.Figure `json:"figures"`
	// Damage says what of the file could not be read, "" for nothing. It becomes a note of the run.
	Damage string `json:"damage,omitzero"`

	format string // of the model
}

// maxFigures bounds the figures of a result.
const maxFigures = 256

// longest bounds a text of a result in bytes.
const longest = 500

// Check refuses a result that no job makes.
func (r *Result) Check() error {
	for _, s := range []string{r.Damage, r.Series.Kind, r.Series.Model, r.Series.Target, r.Series.Engine, r.Series.Machine, r.Series.Settings} {
		if len(s) > longest || strings.ToValidUTF8(s, "") != s || strings.ContainsRune(s, 0) {
			return errors.New("a text of the result is too long or no UTF-8")
		}
	}
	if r.Model != "" && !blob.Valid(r.Model) {
		return errors.New("the model of the result is no SHA-256")
	}
	if len(r.Figures) > maxFigures {
		return fmt.Errorf("%d figures, at most %d", len(r.Figures), maxFigures)
	}
	for _, f := range r.Figures {
		if f.Name == "" || len(f.Name) > longest || strings.ToValidUTF8(f.Name, "") != f.Name {
			return errors.New("a figure has no name, or one that is too long or no UTF-8")
		}
		for _, v := range []*float64{&f.Value, f.Low, f.High} {
			if v != nil && (math.IsNaN(*v) || math.IsInf(*v, 0)) {
				return fmt.Errorf("figure %s is no number", f.Name)
			}
		}
	}
	return nil
}

// Runner does jobs.
type Runner struct {
	// Program is the file of opmeter.
	Program string
	// Limit is the longest time of a child.
	Limit time.Duration
	// Memory bounds the memory of a child in bytes, 0 for the usual bound; Disk what it writes.
	Memory, Disk int64
}

// maxDisk bounds the files of a job in bytes, its inputs among them.
const maxDisk = 16 << 30

// memory is the bound for children: three quarters of what this computer has, unless told.
func (r *Runner) memory() int64 {
	if n, ok := machine.Most(); ok && r.Memory == 0 {
		return n / 4 * 3
	}
	return r.Memory
}

// Do does a job whose inputs are files, by role. The folder takes the result.
func (r *Runner) Do(ctx context.Context, dir string, j *queue.Job, inputs map[string]string, progress func(string)) (*Result, error) {
	made := filepath.Join(dir, "made")
	if err := os.Mkdir(made, 0o700); err != nil {
		return nil, err
	}
	p := planOf(j, inputs, made)
	if p.copy != "" {
		if err := copyFile(p.result, p.copy); err != nil {
			return nil, err
		}
	}
	for _, step := range p.steps {
		if _, err := r.run(ctx, dir, step, progress); err != nil {
			return nil, err
		}
	}
	if err := single(made, p.result); err != nil {
		return nil, err
	}
	res, err := r.read(ctx, dir, made, p.result)
	if err == nil {
		res.OutputFile = p.output
		res.Series.Settings = settingsOf(j, res.Series.Settings, res.format)
	}
	return res, err
}

// single refuses a record with several runs, each of which opmeter wrote to a file of its own: a
// job has one result.
func single(made, result string) error {
	if _, err := os.Lstat(result); err == nil {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(made, "*"+filepath.Ext(result)))
	if err != nil || len(files) < 2 {
		return err
	}
	return &program.Problem{Text: fmt.Sprintf("the record has %d runs, and a job keeps one: write them with opmeter import RECORD -o result%s, and push the files", len(files), filepath.Ext(result))}
}

// copyFile copies a file to one that is absent.
func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func (r *Runner) run(ctx context.Context, dir string, args []string, progress func(string)) (string, error) {
	out, _, err := r.warned(ctx, dir, args, progress)
	return out, err
}

// warned is run that also returns the errors that opmeter printed although it ended well.
func (r *Runner) warned(ctx context.Context, dir string, args []string, progress func(string)) (out string, warnings []string, err error) {
	c := program.Command{File: r.Program, Dir: dir, Args: args, Limit: r.Limit, Memory: r.memory(), Disk: cmp.Or(r.Disk, maxDisk), Progress: progress}
	out, err = c.Run(ctx)
	if p, ok := errors.AsType[*program.Problem](err); ok {
		err = &program.Problem{Text: plain(p.Text, dir)}
	}
	for i := range c.Warnings {
		c.Warnings[i] = plain(c.Warnings[i], dir)
	}
	return out, c.Warnings, err
}

// plain takes the folders of a job out of an error, where inputs lie in numbered folders, and
// advice that is for the command line of the child.
func plain(text, dir string) string {
	for i := range maxInputs {
		text = strings.ReplaceAll(text, filepath.Join(dir, strconv.Itoa(i+1))+string(filepath.Separator), "")
	}
	text = strings.ReplaceAll(text, ", --from NAME skips the detection", "") // a flag that the caller lacks
	return strings.ReplaceAll(text, dir+string(filepath.Separator), "")
}

// maxInputs bounds the inputs of a job.
const maxInputs = 8

// history is what of the answer of opmeter history is read.
type history struct {
	Series []struct {
		Model    string `json:"model"`
		Target   string `json:"target"`
		Figure   string `json:"figure"`
		Measured bool   `json:"measured"`
		Points   []struct {
			Value     float64  `json:"value"`
			Low       *float64 `json:"low"`
			High      *float64 `json:"high"`
			Estimator string   `json:"estimator"`
			Machine   string   `json:"machine"`
			Settings  string   `json:"settings"`
			Model     string   `json:"model_sha256"`
			Format    string   `json:"model_format"`
		} `json:"points"`
	} `json:"series"`
}

// read asks opmeter for the figures of a result: this process opens no file that a model made.
func (r *Runner) read(ctx context.Context, dir, made, file string) (*Result, error) {
	if filepath.Ext(file) == studyEnding {
		return r.readStudy(ctx, dir, file)
	}
	out, err := r.run(ctx, dir, []string{"history", made, "--format=json"}, nil)
	if err != nil {
		return nil, err
	}
	var h history
	if err := jsonx.Unmarshal([]byte(out), &h); err != nil {
		return nil, fmt.Errorf("figures of the profile: %w", err)
	}
	res := &Result{File: file}
	for _, s := range h.Series {
		for _, p := range s.Points {
			res.Series.Model, res.Series.Target = s.Model, s.Target
			res.Series.Machine = max(res.Series.Machine, p.Machine)
			if blob.Valid(p.Model) {
				res.Model = p.Model
			}
			res.Series.Engine, res.Series.Settings = divide(p.Settings)
			res.format = cmp.Or(p.Format, res.format)
			res.Figures = append(res.Figures, store.Figure{Name: s.Figure, Value: p.Value, Low: p.Low, High: p.High, Estimator: p.Estimator, Measured: s.Measured})
		}
	}
	return res, nil
}

// Report writes a profile, a study, or the comparison of several profiles to a file, in the format
// that its ending names.
func (r *Runner) Report(ctx context.Context, results, names []string, to string) error {
	dir, remove, err := subprocess.Folder("page")
	if err != nil {
		return err
	}
	defer remove()
	args := append([]string{"report"}, results...)
	switch {
	case len(results) > 1:
		args[0] = "compare"
		for _, n := range names {
			args = append(args, "--name="+n)
		}
		if filepath.Ext(to) == ".json" {
			args = append(args, "--by=op") // for figures of the whole model
		}
	case filepath.Ext(results[0]) == studyEnding:
		args = append([]string{"compress", "show"}, results...)
	default:
		args = append(args, "--open=false")
	}
	_, err = r.run(ctx, dir, append(args, "--output="+to), nil)
	if p, ok := errors.AsType[*program.Problem](err); ok { // the results lie beside the report
		return &program.Problem{Text: plain(p.Text, filepath.Dir(to))}
	}
	return err
}
