package cli

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/opmeter/opmeter/internal/testing/material"
)

// action is a fake release, and a repository in which steps of the action run.
type action struct {
	t                         *testing.T
	releases, archive, repo   string
	path, output, summary, gh string // files that steps write
}

// newAction makes a release v1.2.3 whose program is the test binary, without a network.
func newAction(t *testing.T) *action {
	t.Helper()
	for _, tool := range []string{"bash", "curl", "git", "tar", "awk", "sha256sum"} {
		if _, err := exec.LookPath(tool); err != nil {
			material.Skip(t, tool+" is absent")
		}
	}
	if runtime.GOOS != "linux" {
		material.Skip(t, "the steps are tried on Linux")
	}
	dir := t.TempDir()
	at := func(elem ...string) string { return filepath.Join(append([]string{dir}, elem...)...) }
	a := &action{t: t, releases: "file://" + dir, archive: at("v1.2.3", fmt.Sprintf("opmeter-v1.2.3-linux-%s.tar.gz", runtime.GOARCH)), repo: at("repo"), path: at("path"), output: at("output"), summary: at("summary"), gh: at("gh.log")}
	name := strings.TrimSuffix(filepath.Base(a.archive), ".tar.gz")
	files := map[string]string{
		name + "/opmeter":        "#!/bin/sh\nOPMETER_TEST_PROGRAM=1 exec '" + os.Args[0] + "' \"$@\"\n",
		name + "/opmeter-engine": "#!/bin/sh\n",
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for file, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: file, Mode: 0o755, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	// A fake gh that keeps what it is called with, and has one comment if a file says so.
	const gh = "#!/bin/sh\necho \"$*\" >>\"$GH_LOG\"\ncase \"$*\" in *--jq*) cat \"$GH_LOG.id\" 2>/dev/null; exit 0 ;; esac\nfor a; do case \"$a\" in body=@*) cat \"${a#body=@}\" >>\"$GH_LOG\" ;; esac; done\n"
	const model = "name: net\ntype: int8\ninput: {name: image, shape: [1, 16, 16, 3]}\nlayers:\n  - {op: conv, filters: 16, kernel: 3}\n  - {op: conv, filters: 8, kernel: 3}\n"
	if err := errors.Join(
		w.Close(), z.Close(),
		os.MkdirAll(filepath.Dir(a.archive), 0o755),
		os.MkdirAll(at("repo", "models"), 0o755),
		os.MkdirAll(at("bin"), 0o755),
		os.MkdirAll(at("tmp"), 0o755),
		os.WriteFile(a.archive, b.Bytes(), 0o600),
		os.WriteFile(at("v1.2.3", "SHA256SUMS"), fmt.Appendf(nil, "%x  %s\n%x  other.zip\n", sha256.Sum256(b.Bytes()), filepath.Base(a.archive), sha256.Sum256(nil)), 0o600),
		os.WriteFile(at("bin", "gh"), []byte(gh), 0o700),
		os.WriteFile(at("repo", "models", "net.yaml"), []byte(model), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	a.git("init", "-q", "-b", "main")
	a.git("add", ".")
	a.git("commit", "-q", "-m", "model")
	return a
}

func (a *action) git(args ...string) {
	a.t.Helper()
	c := exec.Command("git", append([]string{"-c", "user.name=x", "-c", "user.email=x@example.org"}, args...)...)
	c.Dir = a.repo
	if out, err := c.CombinedOutput(); err != nil {
		a.t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

// run runs a script of the action in the repository, after those that it follows.
func (a *action) run(script string, env ...string) (status int, out string) {
	a.t.Helper()
	installed, _ := os.ReadFile(a.path)
	c := exec.Command("bash", filepath.Join(material.Root(), "ci", script))
	dir := filepath.Dir(a.path)
	c.Dir = a.repo
	c.Env = append(os.Environ(),
		"PATH="+strings.TrimSpace(string(installed))+":"+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"), "RUNNER_TEMP="+filepath.Join(dir, "tmp"),
		"GITHUB_PATH="+a.path, "GITHUB_OUTPUT="+a.output, "GITHUB_STEP_SUMMARY="+a.summary, "GITHUB_REPOSITORY=owner/name", "GH_LOG="+a.gh,
		"RELEASES="+a.releases, "RESULTS=results", "VERSION=v1.2.3", "MODELS=models/", "FLAGS=", "UNDECIDED=fail", "NUMBER=17")
	c.Env = append(c.Env, env...)
	b, err := c.CombinedOutput()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		a.t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), string(b)
}

// file is what a file holds, "" if it is absent.
func (a *action) file(name string) string {
	b, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		a.t.Fatal(err)
	}
	return string(b)
}

// TestActionInstall installs a release, and refuses versions that are none and damaged files.
func TestActionInstall(t *testing.T) {
	t.Parallel()
	a := newAction(t)
	for version, want := range map[string]string{
		"": "expected a release", "../v1.2.3": "expected a release", "v1/../v1.2.3": "expected a release", "-x": "expected a release", "v1 $(touch x)": "expected a release", "v9.9.9": "not available: check the version",
	} {
		if status, out := a.run("install.sh", "VERSION="+version); status != 2 || !strings.Contains(out, want) {
			t.Errorf("version %q: status %d: %s", version, status, out)
		}
	}
	if a.file(a.path) != "" {
		t.Errorf("GITHUB_PATH has %q", a.file(a.path))
	}
	if status, out := a.run("install.sh"); status != 0 || !strings.Contains(out, "opmeter version") {
		t.Fatalf("status %d: %s", status, out)
	}
	bin := strings.TrimSpace(a.file(a.path))
	for _, program := range []string{"opmeter", "opmeter-engine"} {
		if _, err := os.Stat(filepath.Join(bin, program)); err != nil {
			t.Error(err)
		}
	}
	data := a.file(a.archive)
	for name, damage := range map[string]func() error{
		"the archive has another byte": func() error {
			return os.WriteFile(a.archive, []byte(data[:len(data)-1]+string(data[len(data)-1]^1)), 0o600)
		},
		"the archive is cut": func() error { return os.WriteFile(a.archive, []byte(data[:100]), 0o600) },
		"no checksum":        func() error { return os.WriteFile(filepath.Join(filepath.Dir(a.archive), "SHA256SUMS"), nil, 0o600) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		before := a.file(a.path)
		if status, out := a.run("install.sh"); status != 2 || !strings.Contains(out, "the checksum is wrong") || a.file(a.path) != before {
			t.Errorf("%s: status %d: %s", name, status, out)
		}
	}
}

// TestActionGate gates a change that is not worse, one that is, and one without a base.
func TestActionGate(t *testing.T) {
	t.Parallel()
	a := newAction(t)
	if status, out := a.run("install.sh"); status != 0 {
		t.Fatalf("install: status %d: %s", status, out)
	}
	model := filepath.Join(a.repo, "models", "net.yaml")
	text := a.file(model)
	a.git("checkout", "-q", "-b", "change")
	// ends checks the status of a step, its output and the summary.
	ends := func(what string, want int, status int, out string) {
		t.Helper()
		if last := fmt.Sprintf("status=%d\n", want); status != want || !strings.HasSuffix(a.file(a.output), last) {
			t.Errorf("%s: status %d, output %q: %s", what, status, a.file(a.output), out)
		}
	}
	status, out := a.run("gate.sh", "FLAGS=--base=main")
	ends("no change", 0, status, out)
	// Twice the channels of the first layer.
	if err := os.WriteFile(model, []byte(strings.Replace(text, "filters: 16", "filters: 32", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	a.git("commit", "-q", "-a", "-m", "wider")
	status, out = a.run("gate.sh", "MODELS=models/*.yaml\n\n") // the base is the merge base
	ends("worse", 1, status, out)
	if s := a.file(a.summary); !strings.Contains(s, "net.yaml") || s == "" {
		t.Errorf("summary %q", s)
	}
	for _, name := range []string{"gate.md", "gate.xml", "gate.json"} {
		if a.file(filepath.Join(a.repo, "results", name)) == "" {
			t.Errorf("%s is absent", name)
		}
	}
	status, out = a.run("gate.sh", "MODELS=models/none.onnx")
	ends("a model that is absent", 3, status, out)
	status, out = a.run("gate.sh", "FLAGS=--on=stm32l4r5\n--no-such-flag")
	ends("an unknown flag", 2, status, out)
	if status, out := a.run("gate.sh", "UNDECIDED=maybe"); status != 2 || !strings.Contains(out, "expected fail or warn") {
		t.Errorf("undecided maybe: status %d: %s", status, out)
	}
	// A program that is undecided.
	bin := filepath.Join(filepath.Dir(a.path), "bin", "opmeter")
	if err := os.WriteFile(bin, []byte("#!/bin/sh\nexit 5\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(a.path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	status, out = a.run("gate.sh")
	ends("undecided", 5, status, out)
	if status, out := a.run("gate.sh", "UNDECIDED=warn"); status != 0 || !strings.Contains(out, "::warning title=opmeter gate::undecided") {
		t.Errorf("undecided with a warning: status %d: %s", status, out)
	}
}

// TestActionProfile measures a model into a page and a profile.
func TestActionProfile(t *testing.T) {
	t.Parallel()
	a := newAction(t)
	if status, out := a.run("install.sh"); status != 0 {
		t.Fatalf("install: status %d: %s", status, out)
	}
	if status, out := a.run("profile.sh", "MODELS=models/net.yaml\n"); status != 0 {
		t.Fatalf("status %d: %s", status, out)
	}
	for _, ending := range []string{".html", ".opmeter"} {
		if a.file(filepath.Join(a.repo, "results", "models_net.yaml"+ending)) == "" {
			t.Errorf("the file %s is absent", ending)
		}
	}
}

// TestActionComment writes a comment, replaces the one of an earlier run, and bounds its size.
func TestActionComment(t *testing.T) {
	t.Parallel()
	a := newAction(t)
	if status, out := a.run("comment.sh"); status != 0 || a.file(a.gh) != "" {
		t.Errorf("without a result: status %d: %s", status, out)
	}
	results := filepath.Join(a.repo, "results")
	if err := errors.Join(os.MkdirAll(results, 0o755), os.WriteFile(filepath.Join(results, "gate.md"), []byte("**worse** "+strings.Repeat("x", 70_000)), 0o600)); err != nil {
		t.Fatal(err)
	}
	if status, out := a.run("comment.sh"); status != 0 {
		t.Fatalf("status %d: %s", status, out)
	}
	log := a.file(a.gh)
	for _, want := range []string{"--method POST repos/owner/name/issues/17/comments", "<!-- opmeter gate -->\n**worse**", "the rest is in the results"} {
		if !strings.Contains(log, want) {
			t.Errorf("%q is missing in %.300s", want, log)
		}
	}
	if len(log) > 61_000 {
		t.Errorf("a comment of %d bytes", len(log))
	}
	if err := os.WriteFile(a.gh+".id", []byte("41\n42\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, out := a.run("comment.sh"); status != 0 || !strings.Contains(a.file(a.gh), "--method PATCH repos/owner/name/issues/comments/42") {
		t.Errorf("a second run: status %d: %s", status, out)
	}
}

// TestGitLabTemplate runs the first step of the template against the fake release.
func TestGitLabTemplate(t *testing.T) {
	t.Parallel()
	a := newAction(t)
	if runtime.GOARCH != "amd64" {
		material.Skip(t, "the template is for amd64")
	}
	var doc map[string]any
	if err := yaml.Unmarshal([]byte(a.file(filepath.Join(material.Root(), "ci", "gitlab.yml"))), &doc); err != nil {
		t.Fatal(err)
	}
	steps := listOf(objectOf(doc["opmeter"])["script"])
	builder := filepath.Join(t.TempDir(), "go")
	if err := os.WriteFile(builder, []byte("#!/bin/sh\necho go \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	try := func(version string) (string, error) {
		c := exec.Command("sh", "-c", scalarOf(steps[0])+"\ncommand -v opmeter")
		c.Dir = a.repo
		c.Env = append(os.Environ(), "OPMETER_VERSION="+version, "OPMETER_RELEASES="+a.releases, "PATH="+filepath.Dir(builder)+string(os.PathListSeparator)+os.Getenv("PATH"))
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := try("v1.2.3"); err != nil || !strings.Contains(out, "opmeter version") {
		t.Errorf("%v: %s", err, out)
	}
	if out, _ := try("source@0123abc"); !strings.Contains(out, "go install github.com/opmeter/opmeter/cmd/opmeter@0123abc\n") {
		t.Errorf("a build of a commit: %s", out)
	}
	for _, version := range []string{"", "source", "source@", "latest"} {
		if out, err := try(version); err == nil || !strings.Contains(out, "set a release, such as v1.2.3, or source@COMMIT") {
			t.Errorf("version %q: %v: %s", version, err, out)
		}
	}
	if err := os.WriteFile(a.archive, []byte("exchanged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := try("v1.2.3"); err == nil {
		t.Errorf("an archive with a wrong checksum was installed: %s", out)
	}
}

// TestActionLints checks the scripts with shellcheck.
func TestActionLints(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob(filepath.Join(material.Root(), "ci", "*.sh"))
	if err != nil || len(scripts) != 4 {
		t.Fatalf("%d scripts: %v", len(scripts), err)
	}
	if _, err := exec.LookPath("shellcheck"); err != nil {
		material.Skip(t, "shellcheck is absent")
	}
	if out, err := exec.Command("shellcheck", scripts...).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
