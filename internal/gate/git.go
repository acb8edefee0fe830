package gate

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	pathpkg "path"
	"path/filepath"
	"slices"
	"strings"
)

// Errors of [OpenRepo] without a repository: neither keeps a gate from working with stored
// baselines. Other errors say that there is a repository, and git does not read it.
var (
	ErrNoGit  = errors.New("git is not installed")
	ErrNoRepo = errors.New("the folder is in no git repository")
)

// maxOutput bounds what is read of git's output, in bytes; files go to disk.
const maxOutput = 1 << 20

// Repo is a git repository. It is only read.
type Repo struct {
	// Root is the folder of the working tree.
	Root string
	// Head is the commit of the working tree, "" before the first one.
	Head string
	// Shallow says that history was cut off when it was cloned.
	Shallow bool
}

// OpenRepo finds the repository of a folder.
func OpenRepo(ctx context.Context, dir string) (*Repo, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return nil, ErrNoGit
	}
	r := &Repo{Root: dir}
	root, err := r.git(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		if strings.Contains(err.Error(), "not a git repository") {
			return nil, ErrNoRepo
		}
		return nil, untrusted(err)
	}
	r.Root = filepath.FromSlash(root)
	r.Head, _ = r.Commit(ctx, "HEAD") // absent before the first commit
	shallow, err := r.git(ctx, "rev-parse", "--is-shallow-repository")
	r.Shallow = shallow == "true"
	return r, err
}

// untrusted says what to do where git refuses a folder of another user, as it does in containers.
func untrusted(err error) error {
	_, after, ok := strings.Cut(err.Error(), "dubious ownership in repository at '")
	dir, _, closed := strings.Cut(after, "'")
	if !ok || !closed {
		return err
	}
	return fmt.Errorf("git does not read the repository %s: another user owns it (dubious ownership). If you trust it, run: git config --global --add safe.directory '%s'", dir, dir)
}

// command is git without anything that the repository's configuration may start.
func (r *Repo) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, "git", append([]string{"-C", r.Root, "--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull}, args...)...)
	c.Env = append(os.Environ(), "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0")
	return c
}

// git runs a command and returns its output without the last line ending.
func (r *Repo) git(ctx context.Context, args ...string) (string, error) {
	var out, errs limited
	c := r.command(ctx, args...)
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		return "", gitError(ctx, args[0], err, errs.String())
	}
	return strings.TrimSuffix(strings.TrimSuffix(out.String(), "\n"), "\r"), nil
}

// gitError is an error of git in its own words.
func gitError(ctx context.Context, what string, err error, said string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	said = strings.TrimSpace(said)
	if i := strings.LastIndex(said, "fatal: "); i >= 0 {
		said = said[i+len("fatal: "):]
	}
	if said == "" {
		said = err.Error()
	}
	lines := slices.DeleteFunc(strings.Split(said, "\n"), func(l string) bool { return strings.TrimSpace(l) == "" })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return fmt.Errorf("git %s: %s", what, strings.Join(lines, "; "))
}

// limited keeps the beginning of what is written to it.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if room := maxOutput - l.Len(); room > 0 {
		l.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// errEnough ends [Repo.each] early.
var errEnough = errors.New("enough")

// maxEntry bounds a line of git's output that is read as a stream.
const maxEntry = maxLine + 64

// each runs a command and calls a function with what its output has before each separator. The
// output is not held in memory.
func (r *Repo) each(ctx context.Context, input string, separator byte, do func(line string) error, args ...string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends git where the function ends early
	var errs limited
	c := r.command(ctx, args...)
	c.Stdin, c.Stderr = strings.NewReader(input), &errs
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	scan := bufio.NewScanner(out)
	scan.Buffer(nil, maxEntry)
	scan.Split(func(data []byte, end bool) (int, []byte, error) {
		if i := bytes.IndexByte(data, separator); i >= 0 {
			return i + 1, data[:i], nil
		}
		if end && len(data) > 0 {
			return len(data), data, nil
		}
		return 0, nil, nil
	})
	var failed error
	for failed == nil && scan.Scan() {
		failed = do(scan.Text())
	}
	if failed == nil {
		failed = scan.Err()
	}
	if failed != nil {
		cancel()
		_ = c.Wait() // the first error is told
		if errors.Is(failed, errEnough) {
			failed = nil
		}
		return failed
	}
	if err := c.Wait(); err != nil {
		return gitError(ctx, args[0], err, errs.String())
	}
	return nil
}

// Files calls a function with the files of a commit in a folder and below, "." for all, with their
// objects.
func (r *Repo) Files(ctx context.Context, commit, dir string, do func(path, object string)) error {
	if !isHash(commit) {
		return fmt.Errorf("%q is not the hash of a commit", commit)
	}
	args := []string{"ls-tree", "-r", "-z", "--full-tree", commit}
	if dir != "." {
		args = append(args, "--", dir+"/")
	}
	return r.each(ctx, "", 0, func(line string) error {
		if name, object, ok := treeEntry(line); ok {
			do(name, object)
		}
		return nil
	}, args...)
}

// Tracking calls a function with the files that git has in the working tree.
func (r *Repo) Tracking(ctx context.Context, do func(path string)) error {
	return r.each(ctx, "", 0, func(line string) error {
		do(line)
		return nil
	}, "ls-files", "-z", "--full-name")
}

// treeEntry reads a line of ls-tree; ok is false for other objects than files.
func treeEntry(line string) (name, object string, ok bool) {
	about, name, _ := strings.Cut(line, "\t")
	part := strings.Fields(about) // mode, type, object
	if len(part) != 3 || part[1] != "blob" || !isHash(part[2]) {
		return "", "", false
	}
	return name, part[2], true
}

// Commit returns the hash of a revision.
func (r *Repo) Commit(ctx context.Context, rev string) (string, error) {
	s, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	if err != nil && ctx.Err() == nil {
		return "", fmt.Errorf("%s is not a commit of this repository%s", rev, r.cut())
	}
	return s, err
}

// cut explains what a shallow clone lacks.
func (r *Repo) cut() string {
	if !r.Shallow {
		return ""
	}
	return ": this is a shallow clone; fetch the history (fetch-depth: 0, GIT_DEPTH: 0, or git fetch --unshallow)"
}

// Dirty reports whether files of the working tree differ from the commit. The folder of the store
// does not count.
func (r *Repo) Dirty(ctx context.Context) bool {
	s, err := r.git(ctx, "status", "--porcelain", "--untracked-files=no", "--", ".", ":(exclude)"+Folder)
	return err == nil && s != ""
}

// Ancestor reports whether a commit is another one or comes before it. It is false for commits
// that are absent.
func (r *Repo) Ancestor(ctx context.Context, a, b string) bool {
	if !isHash(a) || !isHash(b) {
		return false
	}
	_, err := r.git(ctx, "merge-base", "--is-ancestor", a, b)
	return err == nil
}

// MergeBase is the last commit that two have in common.
func (r *Repo) MergeBase(ctx context.Context, a, b string) (string, error) {
	s, err := r.git(ctx, "merge-base", "--end-of-options", a, b)
	if err != nil && ctx.Err() == nil {
		return "", fmt.Errorf("no merge base of %s and %s%s", a, b, r.cut())
	}
	return s, err
}

// Blob is the object of a file at a commit, "" where the commit does not have the file.
func (r *Repo) Blob(ctx context.Context, commit, path string) (string, error) {
	files, err := r.tree(ctx, commit, path)
	return files[path], err
}

// tree lists files of a commit with their objects: those that are named, and those in folders whose
// names end in a slash.
func (r *Repo) tree(ctx context.Context, commit string, paths ...string) (map[string]string, error) {
	if !isHash(commit) {
		return nil, fmt.Errorf("%q is not the hash of a commit", commit)
	}
	s, err := r.git(ctx, append([]string{"ls-tree", "-z", "--full-tree", commit, "--"}, paths...)...)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for line := range strings.SplitSeq(s, "\x00") {
		if name, object, ok := treeEntry(line); ok {
			out[name] = object
		}
	}
	return out, nil
}

// Tracked reports whether git has a file of the working tree, or will have it with the next commit.
func (r *Repo) Tracked(ctx context.Context, path string) bool {
	abs, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	_, err = r.git(ctx, "ls-files", "--error-unmatch", "--", abs)
	return err == nil
}

// Hash is the object that a file of the working tree would be.
func (r *Repo) Hash(ctx context.Context, path string) string {
	abs, err := filepath.Abs(path) // git runs in the root
	if err != nil {
		return ""
	}
	s, err := r.git(ctx, "hash-object", "--end-of-options", abs)
	if err != nil || !isHash(s) {
		return ""
	}
	return s
}

// Has reports whether an object is there.
func (r *Repo) Has(ctx context.Context, object string) bool {
	if !isHash(object) {
		return false
	}
	_, err := r.git(ctx, "cat-file", "-e", object)
	return err == nil
}

// lfs begins a file that stands for one in large-file storage.
const lfs = "version https://git-lfs"

// Extract writes an object to a file as a checkout of the path would, large-file storage included.
func (r *Repo) Extract(ctx context.Context, object, path, to string) error {
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	var errs limited
	c := r.command(ctx, "cat-file", "--filters", "--path="+path, object)
	c.Stdout, c.Stderr = f, &errs
	err = c.Run()
	if err != nil {
		err = gitError(ctx, "cat-file", err, errs.String())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if f, err = os.Open(to); err != nil {
		return err
	}
	head, err := io.ReadAll(io.LimitReader(f, int64(len(lfs))))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if string(head) == lfs {
		return fmt.Errorf("%s of the base lies in large-file storage, which git could not reach: install git-lfs, or fetch with lfs: true", path)
	}
	return nil
}

// Beside lists the files of a commit that belong to a model, with their objects: those that are
// named, and those beside it that have its name and another ending. They hold weights.
func (r *Repo) Beside(ctx context.Context, commit, path string, named []string) (map[string]string, error) {
	dir, name := pathpkg.Split(path)
	stem := strings.TrimSuffix(name, pathpkg.Ext(name))
	if dir == "" {
		dir = "." // --full-tree: the root
	}
	files, err := r.tree(ctx, commit, append([]string{dir}, named...)...)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(files, func(file, _ string) bool {
		base := pathpkg.Base(file)
		return file == path || !slices.Contains(named, file) && !strings.HasPrefix(base, stem+".") && !strings.HasPrefix(base, stem+"_")
	})
	return files, nil
}

// Relative is a path from the root of the repository, with slashes; ok is false outside.
func (r *Repo) Relative(path string) (rel string, ok bool) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", false
	}
	root := r.Root
	for _, p := range []*string{&abs, &root} {
		if real, err := filepath.EvalSymlinks(*p); err == nil {
			*p = real
		}
	}
	rel, err = filepath.Rel(root, abs)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
}

// isHash reports whether a text is the name of an object, in SHA-1 or SHA-256.
func isHash(s string) bool {
	if len(s) != 40 && len(s) != 64 {
		return false
	}
	return strings.Trim(s, "0123456789abcdef") == ""
}

// FirstParents lists a commit and its first parents, at most n.
func (r *Repo) FirstParents(ctx context.Context, commit string, n int) ([]string, error) {
	out, err := r.git(ctx, "rev-list", "--first-parent", fmt.Sprintf("--max-count=%d", n), commit)
	return strings.Fields(out), err
}
