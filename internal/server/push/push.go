// Package push sends profiles, models and records to a server, from a terminal or a CI job.
package push

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/server/blob"
	"github.com/opmeter/opmeter/internal/server/queue"
	"github.com/opmeter/opmeter/internal/server/work"
	"github.com/opmeter/opmeter/profile"
)

// Labels says where files come from.
type Labels struct {
	Branch string `json:"branch,omitzero"`
	Commit string `json:"commit,omitzero"`
	Pull   string `json:"pull,omitzero"`
}

// services lists where CI services keep branch, commit and pull request. The variable that names a
// service is set in all its jobs.
var services = []struct {
	name, present        string
	branch, commit, pull []string
}{
	{"GitHub Actions", "GITHUB_ACTIONS", []string{"GITHUB_HEAD_REF", "GITHUB_REF_NAME"}, []string{"GITHUB_SHA"}, []string{"GITHUB_REF"}},
	{"GitLab CI", "GITLAB_CI", []string{"CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "CI_COMMIT_REF_NAME"}, []string{"CI_COMMIT_SHA"}, []string{"CI_MERGE_REQUEST_IID"}},
	{"Azure Pipelines", "TF_BUILD", []string{"SYSTEM_PULLREQUEST_SOURCEBRANCH", "BUILD_SOURCEBRANCH"}, []string{"BUILD_SOURCEVERSION"}, []string{"SYSTEM_PULLREQUEST_PULLREQUESTNUMBER"}},
	{"Bitbucket", "BITBUCKET_BUILD_NUMBER", []string{"BITBUCKET_BRANCH"}, []string{"BITBUCKET_COMMIT"}, []string{"BITBUCKET_PR_ID"}},
	{"CircleCI", "CIRCLECI", []string{"CIRCLE_BRANCH"}, []string{"CIRCLE_SHA1"}, []string{"CIRCLE_PULL_REQUEST"}},
	{"Buildkite", "BUILDKITE", []string{"BUILDKITE_BRANCH"}, []string{"BUILDKITE_COMMIT"}, []string{"BUILDKITE_PULL_REQUEST"}},
	{"Travis CI", "TRAVIS", []string{"TRAVIS_PULL_REQUEST_BRANCH", "TRAVIS_BRANCH"}, []string{"TRAVIS_COMMIT"}, []string{"TRAVIS_PULL_REQUEST"}},
	{"Jenkins", "JENKINS_URL", []string{"CHANGE_BRANCH", "BRANCH_NAME", "GIT_BRANCH"}, []string{"GIT_COMMIT"}, []string{"CHANGE_ID"}},
}

// Recognise finds out where a CI job stands, and the name of its service, "" outside.
func Recognise(getenv func(string) string) (l Labels, service string) {
	first := func(names []string) string {
		for _, n := range names {
			if v := getenv(n); v != "" {
				return v
			}
		}
		return ""
	}
	for _, s := range services {
		if getenv(s.present) == "" {
			continue
		}
		l = Labels{strings.TrimPrefix(first(s.branch), "refs/heads/"), first(s.commit), number(first(s.pull))}
		return l, s.name
	}
	return l, ""
}

// number reads the number of a pull request from a number, a reference or an address, "" for none.
func number(s string) string {
	s = strings.TrimSuffix(strings.TrimSuffix(s, "/merge"), "/head")
	if at := strings.LastIndexByte(s, '/'); at >= 0 {
		s = s[at+1:]
	}
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return ""
	}
	return s
}

// Git asks git for branch and commit of a folder. Without git, both are unknown.
func Git(ctx context.Context, dir string) (l Labels) {
	ask := func(args ...string) string {
		c := exec.CommandContext(ctx, "git", args...)
		c.Dir = dir
		out, err := c.Output()
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(out))
	}
	l.Commit = ask("rev-parse", "HEAD")
	if b := ask("rev-parse", "--abbrev-ref", "HEAD"); b != "HEAD" {
		l.Branch = b
	}
	return l
}

// Options say what is sent and how.
type Options struct {
	Server  *work.Remote
	Project string
	Paths   []string
	Labels  Labels
	Tags    []string
	// Wait waits for the results.
	Wait bool
	// Bases are the commits that results compare with, the best first. Without a run of one of them,
	// the main branch counts.
	Bases []string
	// Named says that the user named the base: without a run of it there is no comparison.
	Named bool
	// Comment takes the text of a comment for the pull request, nil for none.
	Comment io.Writer
	// Poll waits between two questions for a result, nil for half a second.
	Poll func(context.Context)
	Out  io.Writer
}

// kind is what a server does with a file, by its ending.
func kind(path string) string {
	switch ext := strings.ToLower(filepath.Ext(path)); {
	case ext == profile.Extension || ext == ".study":
		return work.Saved
	case modelfile.HasEnding(path):
		return work.Profile
	}
	return work.Import
}

// files lists the files to send: those named, and the profiles in folders that are named.
func files(paths []string) (out []string, err error) {
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			out = append(out, p)
			continue
		}
		found := len(out)
		err = filepath.WalkDir(p, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() && kind(path) == work.Saved {
				out = append(out, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(out) == found {
			return nil, fmt.Errorf("%s: no profile (*%s) inside: name files, or save profiles with -o", p, profile.Extension)
		}
	}
	return out, nil
}

// Push sends files and prints a line for each: its name and where its result is.
func Push(ctx context.Context, o *Options) error {
	all, err := files(o.Paths)
	if err != nil {
		return err
	}
	if o.Poll == nil {
		o.Poll = func(ctx context.Context) {
			select {
			case <-time.After(500 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
	var failed []error
	var pairs []pair
	jobs := make([]queue.Job, len(all))
	for i, path := range all {
		if jobs[i], err = send(ctx, o, path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if !o.Wait {
			fmt.Fprintf(o.Out, "%s  %s\n", text.Clean(path), o.at("/jobs/"+jobs[i].ID))
		}
	}
	for i, path := range all {
		for o.Wait && !jobs[i].State.Ended() {
			if o.Poll(ctx); ctx.Err() != nil {
				return ctx.Err()
			}
			if _, err := o.Server.Call(ctx, http.MethodGet, "/jobs/"+jobs[i].ID, nil, &jobs[i]); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		switch j := &jobs[i]; {
		case !o.Wait:
		case len(j.Runs) > 0:
			fmt.Fprintf(o.Out, "%s  %s\n", text.Clean(path), o.at("/runs/"+j.Runs[0]))
			p, err := o.compared(ctx, path, j.Runs[0])
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			if p.link != "" {
				fmt.Fprintf(o.Out, "%s  compared with %s: %s\n", text.Clean(path), text.Clean(p.baseName()), p.link)
			} else if o.Named {
				fmt.Fprintf(o.Out, "%s  not compared: %s\n", text.Clean(path), o.noBase())
			}
			pairs = append(pairs, p)
		default:
			why := cmp.Or(j.Error, "the job was cancelled")
			for _, in := range j.Inputs { // the path stands before it already
				why = strings.TrimPrefix(why, in.Name+": ")
			}
			failed = append(failed, fmt.Errorf("%s: %s", path, why))
			pairs = append(pairs, pair{path: path, failed: why})
		}
	}
	if o.Comment != nil {
		if _, err := io.WriteString(o.Comment, o.comment(pairs)); err != nil {
			return fmt.Errorf("comment: %w", err)
		}
	}
	return errors.Join(failed...)
}

// at is the address of a page of the server.
func (o *Options) at(path string) string {
	return text.Clean(strings.TrimSuffix(o.Server.URL, "/") + path)
}

// request asks for a job.
type request struct {
	Project string        `json:"project"`
	Kind    string        `json:"kind"`
	Inputs  []queue.Input `json:"inputs"`
	Labels  Labels        `json:"labels"`
	Tags    []string      `json:"tags,omitempty"`
}

// send uploads a file and starts its job. The same file with the same labels and tags makes one
// job, however often a CI job is repeated.
func send(ctx context.Context, o *Options, path string) (j queue.Job, err error) {
	if info, err := os.Stat(path); err == nil && info.Size() == 0 {
		return j, errors.New("the file is empty")
	}
	hash, err := blob.Hash(path)
	if err != nil {
		return j, err
	}
	if err := o.Server.Store(ctx, hash, path); err != nil {
		return j, err
	}
	name := filepath.Base(path)
	tags := slices.Compact(slices.Sorted(slices.Values(o.Tags)))
	body := request{o.Project, kind(path), []queue.Input{{Name: name, Hash: hash}}, o.Labels, tags}
	b, err := jsonx.Marshal(&body)
	if err != nil {
		return j, err
	}
	key := sha256.Sum256(b)
	_, err = o.Server.CallWith(ctx, http.MethodPost, "/jobs", body, &j, http.Header{"Idempotency-Key": {hex.EncodeToString(key[:])}})
	return j, err
}
