package gate

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// work is a repository of a test.
type work struct {
	t   *testing.T
	dir string
}

func newWork(t *testing.T) *work {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is absent")
	}
	w := &work{t, t.TempDir()}
	w.git("init", "-q", "-b", "main")
	return w
}

// git runs git without the configuration of whoever runs the test.
func (w *work) git(args ...string) string {
	w.t.Helper()
	c := exec.Command("git", append([]string{"-C", w.dir, "-c", "user.name=n", "-c", "user.email=e@example.com"}, args...)...)
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	out, err := c.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (w *work) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		w.t.Fatal(err)
	}
}

// commit commits all files and returns the hash.
func (w *work) commit(message string) string {
	w.t.Helper()
	w.git("add", "-A")
	w.git("commit", "-q", "--allow-empty", "-m", message)
	return w.git("rev-parse", "HEAD")
}

func (w *work) open() *Repo {
	w.t.Helper()
	r, err := OpenRepo(w.t.Context(), w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func nothing(string) string { return "" }

func TestOpenRepo(t *testing.T) {
	t.Parallel()
	w := newWork(t)
	if r := w.open(); r.Head != "" || r.Shallow {
		t.Errorf("before the first commit: %+v", r)
	}
	if _, err := OpenRepo(t.Context(), t.TempDir()); !errors.Is(err, ErrNoRepo) {
		t.Errorf("no repository: %v", err)
	}
	if _, err := OpenRepo(t.Context(), filepath.Join(w.dir, "none")); err == nil {
		t.Error("a missing folder is a repository")
	}
	w.write("m/a.tflite", "one")
	first := w.commit("one")
	r := w.open()
	if r.Head != first || r.Dirty(t.Context()) {
		t.Errorf("%+v", r)
	}
	w.write(Folder+"/x", "y")
	w.git("add", "-A")
	if r.Dirty(t.Context()) {
		t.Error("baselines make the working tree dirty")
	}
	w.write("m/b.tflite", "new")
	if at := filepath.Join(w.dir, "m"); !r.Tracked(t.Context(), filepath.Join(at, "a.tflite")) || r.Tracked(t.Context(), filepath.Join(at, "b.tflite")) || r.Tracked(t.Context(), filepath.Join(at, "none")) {
		t.Error("files that git tracks")
	}
	w.write("m/a.tflite", "two")
	if !r.Dirty(t.Context()) {
		t.Error("a changed model does not")
	}
	if name, ok := r.Relative(filepath.Join(w.dir, "m", "a.tflite")); name != "m/a.tflite" || !ok {
		t.Errorf("%q, %v", name, ok)
	}
	if _, ok := r.Relative(t.TempDir()); ok {
		t.Error("a folder outside lies inside")
	}
}

func TestBlobs(t *testing.T) {
	t.Parallel()
	w := newWork(t)
	w.write("m/ä b.onnx", "model")
	w.write("m/ä b.onnx.data", "weights")
	w.write("m/other.bin", "named")
	w.write("m/other.onnx", "no")
	w.write("root.onnx", "model")
	w.write("root_weights.bin", "weights")
	w.write("m/big.tflite", lfs+"/spec/v1\noid sha256:0\nsize 5\n")
	commit := w.commit("one")
	r := w.open()
	ctx := t.Context()
	blob, err := r.Blob(ctx, commit, "m/ä b.onnx")
	if err != nil || !r.Has(ctx, blob) || r.Hash(ctx, filepath.Join(w.dir, "m", "ä b.onnx")) != blob {
		t.Fatalf("%q, %v", blob, err)
	}
	for _, name := range []string{"m/none.onnx", "m", "", "../x"} {
		if b, err := r.Blob(ctx, commit, name); b != "" {
			t.Errorf("%q has object %s, %v", name, b, err)
		}
	}
	if b, err := r.Blob(ctx, "--name-only", "m/big.tflite"); b != "" || err == nil {
		t.Errorf("an option is a commit: %q, %v", b, err)
	}
	to := filepath.Join(t.TempDir(), "x")
	if err := r.Extract(ctx, blob, "m/ä b.onnx", to); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(to); err != nil || string(b) != "model" {
		t.Errorf("%q, %v", b, err)
	}
	beside, err := r.Beside(ctx, commit, "m/ä b.onnx", []string{"m/other.bin"})
	if err != nil || len(beside) != 2 || beside["m/ä b.onnx.data"] == "" || beside["m/other.bin"] == "" {
		t.Errorf("%v, %v", beside, err)
	}
	if beside, err := r.Beside(ctx, commit, "root.onnx", nil); err != nil || len(beside) != 1 || beside["root_weights.bin"] == "" {
		t.Errorf("in the root: %v, %v", beside, err)
	}
	if blob, err = r.Blob(ctx, commit, "m/big.tflite"); err != nil {
		t.Fatal(err)
	}
	if err := r.Extract(ctx, blob, "m/big.tflite", to); err == nil || !strings.Contains(err.Error(), "large-file storage") {
		t.Errorf("a pointer: %v", err)
	}
	for _, object := range []string{"", "-x", "HEAD", strings.Repeat("0", 40)} {
		if r.Has(ctx, object) {
			t.Errorf("object %q is there", object)
		}
	}
}

func TestFindBase(t *testing.T) {
	t.Parallel()
	w := newWork(t)
	ctx := t.Context()
	w.write("a", "1")
	first := w.commit("one")
	none, some := &Store{}, &Store{Records: []Record{record(Accepted, "a", 1)}}
	find := func(name string, s *Store, want string, env func(string) string, kind, commit, fault string) {
		t.Helper()
		b, err := FindBase(ctx, w.open(), nil, s, want, env)
		if fault != "" {
			if err == nil || !strings.Contains(err.Error(), fault) {
				t.Errorf("%s: %v, want %q", name, err, fault)
			}
			return
		}
		if err != nil || b.Kind != kind || b.Commit != commit {
			t.Errorf("%s: %+v, %v; want %s %s", name, b, err, kind, commit)
		}
	}
	find("first commit", none, Auto, nothing, Missing, "", "")
	find("first commit, accepted", some, Auto, nothing, Accepted, "", "")
	find("no parent", some, Parent, nothing, "", "", "HEAD has no parent")
	find("nothing accepted", none, Accepted, nothing, "", "", "no baseline was accepted")
	w.write("a", "2")
	find("changed on the main branch", none, Auto, nothing, Revision, first, "")
	second := w.commit("two")
	find("main branch", none, Auto, nothing, Parent, first, "")
	w.git("checkout", "-q", "-b", "change", first)
	w.write("b", "1")
	w.commit("three")
	find("a change", some, Auto, nothing, MergeBase, first, "")
	find("a commit", none, "main", nothing, Revision, second, "")
	find("an option", none, "--version", nothing, "", "", "is not a commit")
	find("no commit", none, "none", nothing, "", "", "none is not a commit of this repository")
	find("accepted", some, Accepted, nothing, Accepted, "", "")
	w.git("branch", "-q", "release", second)
	w.git("checkout", "-q", "--detach")
	find("detached", none, Auto, nothing, MergeBase, first, "")
	service := func(v string) string {
		if v == "SYSTEM_PULLREQUEST_TARGETBRANCH" {
			return "refs/heads/change"
		}
		return ""
	}
	find("branch of the service", none, MergeBase, service, MergeBase, w.git("rev-parse", "change"), "")
	w.git("checkout", "-q", "--orphan", "apart")
	w.commit("four")
	find("no common commit", none, MergeBase, nothing, "", "", "no merge base of HEAD and main")
	w.git("branch", "-q", "-D", "main")
	find("no branch", none, MergeBase, nothing, "", "", "no branch found")

	b, err := FindBase(ctx, nil, ErrNoGit, none, Auto, nothing)
	if err != nil || b.Kind != Missing || !strings.Contains(b.Why, "git is not installed") {
		t.Errorf("%+v, %v", b, err)
	}
	if _, err := FindBase(ctx, nil, ErrNoGit, some, "main", nothing); err == nil || !strings.Contains(err.Error(), "git is not installed") {
		t.Errorf("a commit without git: %v", err)
	}
}

// A shallow clone says what it lacks and what to do.
func TestShallow(t *testing.T) {
	t.Parallel()
	w := newWork(t)
	w.commit("one")
	w.commit("two")
	clone := &work{t, filepath.Join(t.TempDir(), "clone")}
	w.git("clone", "-q", "--depth", "1", "file://"+filepath.ToSlash(w.dir), clone.dir)
	r := clone.open()
	if !r.Shallow {
		t.Fatal("the clone is not shallow")
	}
	b, err := FindBase(t.Context(), r, nil, &Store{}, Auto, nothing)
	if err != nil || b.Kind != Missing || !strings.Contains(b.Why, "shallow clone; fetch the history") {
		t.Errorf("%+v, %v", b, err)
	}
}

// A repository that git refuses is not taken for none: the error says what git said and what helps.
func TestUntrusted(t *testing.T) {
	t.Parallel()
	said := "git rev-parse: detected dubious ownership in repository at '/src/a b'; To add an exception for this directory, call:; git config --global --add safe.directory '/src/a b'"
	err := untrusted(errors.New(said))
	for _, want := range []string{"dubious ownership", "/src/a b", "git config --global --add safe.directory '/src/a b'"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
	other := errors.New("git rev-parse: bad object")
	if untrusted(other) != other { //nolint:errorlint // the very same one
		t.Error("another error was changed")
	}
	if got := gitError(t.Context(), "x", errors.New("exit 1"), "fatal: one\n\n\ttwo\n"); got.Error() != "git x: one; two" {
		t.Errorf("%q", got)
	}
}

// The files of a commit are listed in a folder and below, whatever their names are.
func TestFiles(t *testing.T) {
	t.Parallel()
	w := newWork(t)
	for _, f := range []string{"m/a.tflite", "m/b/ä \"x\".onnx", "mm/c.tflite", "d.tflite"} {
		w.write(f, f)
	}
	commit := w.commit("one")
	r := w.open()
	list := func(dir string) (out []string) {
		t.Helper()
		if err := r.Files(t.Context(), commit, dir, func(path, _ string) { out = append(out, path) }); err != nil {
			t.Fatal(err)
		}
		return out
	}
	if got := list("m"); !slices.Equal(got, []string{"m/a.tflite", "m/b/ä \"x\".onnx"}) {
		t.Errorf("m has %q", got)
	}
	if got := list("."); len(got) != 4 {
		t.Errorf("the root has %q", got)
	}
	var tracked []string
	if err := r.Tracking(t.Context(), func(path string) { tracked = append(tracked, path) }); err != nil || len(tracked) != 4 {
		t.Errorf("tracked %q, %v", tracked, err)
	}
}
