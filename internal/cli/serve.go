package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter/internal/base/subprocess"
	"github.com/opmeter/opmeter/internal/external/find"
)

const (
	// serverProgram is the server and its workers. It is a program of its own, because databases and
	// the message server would double the size of this one.
	serverProgram = "opmeter-server"
	// serverVariable is the environment variable that names it.
	serverVariable = "OPMETER_SERVER"
)

func newServe(a *app) *cobra.Command {
	var (
		data, listen, database, nats, files, cert, key string
		memory, logs                                   string
		open, worker, verbose                          bool
		limit                                          time.Duration
	)
	c := &cobra.Command{
		Use:   "serve",
		Short: "Profile models that are dropped on a page of the browser",
		Long: `Start a server and open its page: drop a model or a record on it, and see the profile. Results stay
in a folder of this computer. Without --listen, only this computer reaches the page.

For a team, --listen takes an address that others reach, by TLS and with the token that the first
start prints. --database, --nats and --files name a PostgreSQL, a NATS and a bucket of S3 instead of
those inside; AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY open the bucket. opmeter worker lets other computers and their boards do jobs.`,
		Example: `  opmeter serve
  opmeter serve --listen 127.0.0.1:8080 --data results --open=false
  opmeter serve --listen 0.0.0.0:8443`,
		Args: none,
		RunE: func(c *cobra.Command, _ []string) error {
			if data == "" {
				var err error
				if data, err = dataDir(runtime.GOOS, os.Getenv); err != nil {
					return withStatus(statusUse, err)
				}
			}
			if (cert == "") != (key == "") {
				return useError("--tls-cert and --tls-key: name both")
			}
			most, err := jobMemory(memory)
			if err != nil {
				return err
			}
			args := []string{
				"serve", "-data=" + data, "-listen=" + listen, "-database=" + database, "-nats=" + nats, "-files=" + files, "-tls-cert=" + cert, "-tls-key=" + key,
				"-worker=" + strconv.FormatBool(worker), "-verbose=" + strconv.FormatBool(verbose), "-limit=" + limit.String(), most, "-log=" + logs,
			}
			return a.serve(c.Context(), args, nil, func(line string) {
				switch what, text, _ := strings.Cut(line, " "); what {
				case "certificate":
					fingerprint, file, _ := strings.Cut(text, " ")
					fmt.Fprintf(a.out, "Certificate of this server: %s\nIts SHA-256 fingerprint: %s\n", file, fingerprint)
					fmt.Fprintf(a.out, "Browsers warn of it: compare the fingerprint. Workers and push accept it with OPMETER_CA=FILE, a copy of it.\n")
				case "token":
					fmt.Fprintf(a.out, "Token of the first administrator, shown once: %s\n", text)
				case "url":
					fmt.Fprintf(a.out, "opmeter serves at %s\nDrop a model on the page. Results are in %s. Ctrl-C ends the server.\n", text, data)
					if open {
						a.browse(text)
					}
				}
			})
		},
	}
	f := c.Flags()
	f.StringVar(&data, "data", "", "`DIR`: folder of results (default: in your account)")
	f.StringVar(&listen, "listen", "127.0.0.1:0", "`HOST:PORT`: address; port 0 is any free one")
	f.StringVar(&database, "database", "", "`URL` of a PostgreSQL (default: SQLite in the folder)")
	f.StringVar(&nats, "nats", "", "`URL` of a NATS with JetStream (default: inside the server)")
	f.StringVar(&files, "files", "", "`URL` of a bucket, s3://NAME/PREFIX (default: the folder)")
	f.StringVar(&cert, "tls-cert", "", "`FILE`: certificate (default: the server makes one)")
	f.StringVar(&key, "tls-key", "", "`FILE`: its key")
	f.BoolVar(&open, "open", true, "open the page in the browser (--open=false: do not)")
	f.BoolVar(&worker, "worker", true, "do jobs on this computer (--worker=false: do not)")
	f.BoolVar(&verbose, "verbose", false, "log every request")
	spanVar(c, &limit, "limit", 10*time.Minute, time.Second, "longest time of a job", "a time of at least 1s, such as 10m")
	f.StringVar(&logs, "log", "auto", "`FORMAT`: text, json or auto")
	f.StringVar(&memory, "memory", "", "`SIZE`: most memory of a job, such as 4GiB (Linux)")
	c.AddCommand(newServeCopy(a))
	return c
}

func newServeCopy(a *app) *cobra.Command {
	var from, to string
	c := &cobra.Command{
		Use:   "copy",
		Short: "Copy the results of a server to another database",
		Long: `Copy all results from SQLite to PostgreSQL, back, or to another folder. Each side is a folder as
--data names it, with a SQLite inside, or the URL of a PostgreSQL. The target must be empty. Every row
and every file is compared by its hash, and the counts are printed.

Files of profiles and models stay in the folder, where a server with --database reads them too: back
from PostgreSQL, name this folder with --to. From a folder to a folder they are copied. Jobs are not copied: let them end, then end the server.`,
		Example: `  opmeter serve copy --from results --to postgres://opmeter@db.example/opmeter
  opmeter serve copy --from postgres://opmeter@db.example/opmeter --to results`,
		Args: none,
		RunE: func(c *cobra.Command, _ []string) error {
			if from == "" || to == "" {
				return useError("--from and --to: name a folder or a URL such as postgres://USER:PASSWORD@HOST/NAME with each")
			}
			return a.serve(c.Context(), []string{"copy", "-from=" + from, "-to=" + to}, nil, func(line string) { fmt.Fprintln(a.out, line) })
		},
	}
	f := c.Flags()
	f.StringVar(&from, "from", "", "`DIR|URL`: results to copy")
	f.StringVar(&to, "to", "", "`DIR|URL`: where to, with no results yet")
	return c
}

func newServerWorker(a *app) *cobra.Command {
	var (
		server, name, memory, logs string
		limit                      time.Duration
	)
	c := &cobra.Command{
		Use:   "worker",
		Short: "Do the jobs of a server on this computer",
		Long: `Fetch jobs of an opmeter server and do them here, one at a time: measure on this computer, with its
engines, on its boards. The worker calls the server and needs no open port. Its token is read from
OPMETER_TOKEN. OPMETER_CA names the certificate of a server that signed its own.`,
		Example: `  opmeter worker --server https://lab.example:8443
  opmeter worker --server http://127.0.0.1:8080 --name bench-3`,
		Args: none,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkServer(server); err != nil {
				return err
			}
			most, err := jobMemory(memory)
			if err != nil {
				return err
			}
			args := []string{"worker", "-server=" + server, "-name=" + name, "-limit=" + limit.String(), most, "-log=" + logs}
			return a.serve(c.Context(), args, nil, func(line string) {
				if line == "ready" {
					fmt.Fprintf(a.out, "This computer does jobs of %s. Ctrl-C ends the worker.\n", server)
				}
			})
		},
	}
	f := c.Flags()
	f.StringVar(&server, "server", "", "`URL` of the server")
	f.StringVar(&name, "name", "", "`NAME` of this worker (default: that of the computer)")
	spanVar(c, &limit, "limit", 10*time.Minute, time.Second, "longest time of a job", "a time of at least 1s, such as 10m")
	f.StringVar(&logs, "log", "auto", "`FORMAT`: text, json or auto")
	f.StringVar(&memory, "memory", "", "`SIZE`: most memory of a job, such as 4GiB (Linux)")
	return c
}

func newPush(a *app) *cobra.Command {
	var (
		server, project, branch, commit, pull, base, comment string
		tags                                                 []string
		wait                                                 bool
	)
	c := &cobra.Command{
		Use:   "push FILE | DIR...",
		Short: "Send profiles, models and traces to a server",
		Long: `Send files to an opmeter server and print where their results are. Saved profiles are stored as they
are, models are measured by the workers of the server, profiles and traces of other tools are
imported. A folder stands for the profiles inside. Branch, commit and pull request are taken from the
CI job, or from git. The token is read from OPMETER_TOKEN.

Results are compared with those of the base: of the merge base with the branch that the change is
for, or of the commit before it on that branch that has results. --comment writes a comment for the
pull request: what got better or worse, with intervals. Its first line is the same each time.`,
		Example: `  opmeter push result.opmeter --server https://lab.example:8443 --project speech
  opmeter push results/ --server http://127.0.0.1:8080 --project a --tag nightly
  opmeter push a.onnx --server http://127.0.0.1:8080 --project a --comment c.md`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return useError("name files or folders: opmeter %s", usageOf(c))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkServer(server); err != nil {
				return err
			}
			if project == "" {
				return useError("--project: name the project on the server")
			}
			if pull != "" && !isNumber(pull) {
				return useError("--pull %q: expected the number of a pull request, such as 12", pull)
			}
			if !wait && (base != "" || comment != "") {
				return useError("--wait=false: without results there is nothing to compare: leave out --base and --comment")
			}
			pass := []string{
				"push", "-server=" + server, "-project=" + project, "-branch=" + branch, "-commit=" + commit, "-pull=" + pull,
				"-wait=" + strconv.FormatBool(wait), "-base=" + base, "-comment=" + comment,
			}
			for _, t := range tags {
				pass = append(pass, "-tag="+t)
			}
			return a.serve(c.Context(), pass, args, func(line string) { fmt.Fprintln(a.out, line) })
		},
	}
	f := c.Flags()
	f.StringVar(&server, "server", "", "`URL` of the server")
	f.StringVar(&project, "project", "", "`NAME` of the project on the server")
	f.StringVar(&branch, "branch", "", "`NAME` of the branch (default: of the CI job, or of git)")
	f.StringVar(&commit, "commit", "", "`ID` of the commit (default: of the CI job, or of git)")
	f.StringVar(&pull, "pull", "", "`N`: number of the pull request (default: of the CI job)")
	f.StringArrayVar(&tags, "tag", nil, "`TEXT…`: tag of the results")
	f.StringVar(&base, "base", "", "`COMMIT` to compare with (default: the merge base with the branch that the change is for)")
	f.StringVar(&comment, "comment", "", "`FILE`: write a comment for the pull request in Markdown; - is standard output")
	f.BoolVar(&wait, "wait", true, "wait for the results (--wait=false: do not)")
	return c
}

// isNumber reports whether a text is a number above zero, without a sign.
func isNumber(s string) bool {
	n, err := strconv.ParseUint(s, 10, 59)
	return err == nil && n > 0 && strconv.FormatUint(n, 10) == s
}

// leastMemory is more than a job of a small model needs.
const leastMemory = 512 << 20

// jobMemory is the flag of the server for the most memory of a job, "" is its default.
func jobMemory(size string) (string, error) {
	if size == "" {
		return "-memory=0", nil
	}
	if runtime.GOOS != "linux" {
		return "", useError("--memory: the memory of jobs is bounded on Linux only")
	}
	n, err := quantity("memory", size, "a size such as 4GiB or 512MiB", sizes)
	if err == nil && n < leastMemory {
		err = useError("--memory %s: opmeter itself needs some of it: write at least 512MiB", size)
	}
	return "-memory=" + strconv.FormatInt(int64(n), 10), err
}

// checkServer refuses a text that is not the address of a server.
func checkServer(server string) error {
	if u, err := url.Parse(server); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return useError("--server %q: expected the address of a server, such as https://lab.example:8443", server)
	}
	return nil
}

// serve runs the server's program until it ends or the context does. It calls told with each line
// that the program prints. Files follow the flags.
func (a *app) serve(ctx context.Context, flags, files []string, told func(line string)) error {
	program, err := a.serverFile(ctx)
	if err != nil {
		return withStatus(statusUse, err)
	}
	self, err := os.Executable()
	if err != nil {
		return withStatus(statusSource, fmt.Errorf("own program: %w", err))
	}
	cmd := exec.Command(program, slices.Concat(flags, []string{"-opmeter=" + self, "--"}, files)...)
	cmd.Stderr = a.err
	// The end of its input tells the program to end, on every system and also if this one is killed.
	life, err := cmd.StdinPipe()
	if err != nil {
		return withStatus(statusSource, err)
	}
	lines, err := cmd.StdoutPipe()
	if err != nil {
		return withStatus(statusSource, err)
	}
	cmd.Env = append(os.Environ(), subprocess.HeldByStdin)
	var group subprocess.Group
	group.Prepare(cmd)
	if err := group.Start(cmd); err != nil {
		return withStatus(statusSource, fmt.Errorf("%s does not start: %w", program, plainPath(err)))
	}
	defer group.Kill()
	defer context.AfterFunc(ctx, func() { _ = life.Close() })()
	lasting := flags[0] == "serve" || flags[0] == "worker"
	if lasting {
		a.measures(serverEnd)
	}
	scan := bufio.NewScanner(lines)
	scan.Buffer(nil, 1<<20)
	problem := ""
	for scan.Scan() {
		if text, ok := strings.CutPrefix(scan.Text(), "\x1e"); ok {
			problem = text
			continue
		}
		told(scan.Text())
	}
	err = errors.Join(scan.Err(), cmd.Wait())
	switch {
	case ctx.Err() != nil && lasting:
		return nil // Ctrl-C is how servers and workers end
	case ctx.Err() != nil:
		return ctx.Err()
	case problem != "":
		return withStatus(statusUse, errors.New(problem))
	case err != nil:
		return withStatus(statusSource, fmt.Errorf("%s ended (%w)", serverProgram, err))
	}
	return nil
}

// serverEnd is how long a server or a worker may take to end after Ctrl-C: it releases its job and
// answers the requests that it has.
const serverEnd = 45 * time.Second

// serverFile finds the server's program. In the source code it is built, since a run of this one
// builds nothing else.
func (a *app) serverFile(ctx context.Context) (string, error) {
	env := find.Here()
	file, err := env.Companion(serverProgram, serverVariable, "serves", `for Python: pip install "opmeter[server]"; archives and Debian packages contain it, the package of npm does not`)
	if err == nil || os.Getenv(serverVariable) != "" {
		return file, err
	}
	source := filepath.Join(env.Dir, "cmd", serverProgram, "main.go")
	if _, statErr := os.Stat(source); statErr != nil {
		return "", err
	}
	cache, cacheErr := os.UserCacheDir()
	if cacheErr != nil {
		return "", err
	}
	file = filepath.Join(cache, "opmeter", "build", serverProgram)
	if env.OS == "windows" {
		file += ".exe"
	}
	fmt.Fprintf(a.err, "building %s from the source code: two minutes the first time\n", serverProgram)
	build := exec.CommandContext(ctx, "go", "build", "-o", file, "./cmd/"+serverProgram)
	build.Stdout, build.Stderr = io.Discard, a.err
	if buildErr := subprocess.Run(build); buildErr != nil {
		return "", errors.Join(err, fmt.Errorf("building it: %w", buildErr))
	}
	return file, nil
}

// dataDir is the folder for data of the user.
func dataDir(goos string, getenv func(string) string) (string, error) {
	base, home := "", getenv("HOME")
	switch goos {
	case "windows":
		base = getenv("LocalAppData")
	case "darwin", "ios":
		if home != "" {
			base = filepath.Join(home, "Library", "Application Support")
		}
	default:
		if base = getenv("XDG_DATA_HOME"); base == "" && home != "" {
			base = filepath.Join(home, ".local", "share")
		}
	}
	if base == "" {
		return "", errors.New("no folder for data of your account is known: name one with --data")
	}
	return filepath.Join(base, "opmeter"), nil
}
