package server

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/server/store"
	"github.com/opmeter/opmeter/internal/server/work"
)

// An upload that is refused says why, although the answer to HEAD has no body.
func TestUploadRefused(t *testing.T) {
	t.Parallel()
	reader := other(t).as(store.Read, "")
	file := filepath.Join(t.TempDir(), "a.onnx")
	if err := os.WriteFile(file, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := work.Remote{URL: reader.url, Token: reader.token, Client: http.DefaultClient}
	err := r.Store(t.Context(), strings.Repeat("a", 64), file)
	if err == nil || !strings.Contains(err.Error(), "the token has the role read, this needs run") {
		t.Errorf("upload of a reader: %v", err)
	}
}

// Numbers of pull requests are numbers.
func TestPullNumber(t *testing.T) {
	t.Parallel()
	c := start(t, func(o *Options) { o.Worker = false })
	hash := c.upload("a")
	for pull, want := range map[string]int{"": 201, "12": 201, "abc": 422, "-3": 422, "0": 422, "1\n": 422} {
		c.call(want, "POST", "/jobs", jobBody{Project: "p", Kind: work.Profile, Inputs: []inputBody{{Name: "a.onnx", Hash: hash}}, Labels: labelsBody{Pull: pull}}, nil)
	}
}

// A saved profile is of the model that it names, and compares with a measured one.
func TestSavedProfile(t *testing.T) {
	t.Parallel()
	c := start(t)
	measured := c.finished("model", func(b *jobBody) { b.Labels = labelsBody{Branch: "main", Commit: "a"} })
	saved := c.finished("saved", func(b *jobBody) { b.Kind, b.Inputs[0].Name = work.Saved, "net.opmeter" })
	if saved.ModelHash != strings.Repeat("0", 63)+"7" || saved.ModelFile != "" || measured.ModelHash == saved.ModelHash || measured.ModelFile == "" {
		t.Errorf("models of %+v and %+v", measured, saved)
	}
	var base runView
	c.call(200, "GET", "/runs/"+saved.ID+"/base", nil, &base)
	if base.ID != measured.ID || base.Series != saved.Series {
		t.Errorf("base %+v", base)
	}
	// The name of a model opens no file of another project.
	err := c.s.db.View(t.Context(), func(tx *store.Tx) error {
		if ok, err := tx.BlobOf(saved.ModelHash, saved.Project); ok || err != nil {
			t.Errorf("file of a named model: %t, %v", ok, err)
		}
		ok, err := tx.BlobOf(measured.ModelHash, measured.Project)
		if !ok {
			t.Error("the file of a measured model is not of its project")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Names are trimmed, and those that do not show are refused.
func TestNames(t *testing.T) {
	t.Parallel()
	c := start(t)
	first := c.finished("a", func(b *jobBody) { b.Project, b.Tags = " speech", []string{" x "} })
	second := c.finished("b", func(b *jobBody) { b.Project = "speech " })
	if first.Project != second.Project || !slices.Equal(first.Tags, []string{"x"}) {
		t.Errorf("runs %+v and %+v", first, second)
	}
	job := jobBody{Kind: work.Profile, Inputs: []inputBody{{Name: "a.onnx", Hash: c.upload("a")}}}
	for _, name := range []string{" ", "a\x00b", "a\u202eb"} {
		job.Project, job.Tags = name, nil
		c.call(422, "POST", "/jobs", job, nil)
		job.Project, job.Tags = "speech", []string{name}
		c.call(422, "POST", "/jobs", job, nil)
		c.call(422, "POST", "/projects", projectBody{Name: name}, nil)
		c.call(422, "PUT", "/projects/speech", projectBody{Name: name}, nil)
		c.call(422, "PUT", "/runs/"+first.ID+"/note", noteBody{Tags: []string{name}}, nil)
	}
	// A badge shows a figure of its series.
	c.call(422, "POST", "/shares", shareBody{Series: first.Series, Figure: "none"}, nil)
	c.call(201, "POST", "/shares", shareBody{Series: first.Series, Figure: "macs"}, nil)
}
