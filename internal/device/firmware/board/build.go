package board

import (
	"bytes"
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/opmeter/opmeter/internal/base/infile"
	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/internal/base/subprocess"
)

// MissingError says that a required program is not installed.
type MissingError struct {
	Program string // such as arm-none-eabi-gcc
	Advice  string // how to get it
}

func (e *MissingError) Error() string { return e.Program + " was not found: " + e.Advice }

// Advice for the two external programs.
const (
	compilerName   = "arm-none-eabi-gcc"
	compilerAdvice = "install it (Debian and Ubuntu: gcc-arm-none-eabi libnewlib-arm-none-eabi; macOS: gcc-arm-embedded; Windows: the Arm GNU Toolchain) or name it with --gcc"
	emulatorName   = "qemu-system-arm"
	emulatorAdvice = "install it (Debian and Ubuntu: qemu-system-arm; macOS and Windows: qemu)"
)

// BuildError is the message of a compiler or linker, or a memory overflow.
type BuildError struct {
	What   string // one line
	Output string // of the program, cut
}

func (e *BuildError) Error() string {
	if e.Output == "" {
		return e.What
	}
	return e.What + ": " + e.Output
}

// Options of [Build].
type Options struct {
	// GCC is the compiler, "" for arm-none-eabi-gcc in the PATH.
	GCC string
	// Flags are added to the board's, for tests.
	Flags []string
}

// Built is the result of a build.
type Built struct {
	ELF  string // path of the file
	Uses []Use  // of the board's memories, in their order
}

// Use is the memory use of a program in bytes.
type Use struct {
	Memory     string
	Used, Size int64
}

// Fits checks before a build whether the known parts of a model fit: the bytes of weights and of
// the arena. The size of the code is known only to the linker.
func (b *Board) Fits(weights, arena int64) error {
	for _, m := range b.Memories {
		var need int64
		var parts []string
		for _, r := range m.Holds {
			n := map[string]int64{"weights": weights, "arena": arena, "stack": int64(b.Stack) + handlerStack}[r]
			if n > 0 {
				need += n
				parts = append(parts, fmt.Sprintf("%s %d", r, n))
			}
		}
		if need > int64(m.Size) {
			return &BuildError{What: fmt.Sprintf("the model does not fit %s: its memory %s has %d bytes, needed are at least %d (%s)",
				b.Name, m.Name, m.Size, need, strings.Join(parts, ", "))}
		}
	}
	return nil
}

// Build builds the project in a folder, with the same commands as its Makefile. Compiler warnings
// are errors, since all files are generated.
func Build(ctx context.Context, b *Board, dir string, files map[string][]byte, o Options) (*Built, error) {
	gcc := cmp.Or(o.GCC, compilerName)
	found, err := exec.LookPath(gcc)
	if err != nil {
		return nil, &MissingError{Program: gcc, Advice: compilerAdvice}
	}
	if gcc, err = filepath.Abs(found); err != nil {
		return nil, err
	}
	list := sources(files)
	flags := slices.Concat(b.flagList(), []string{"-Werror"}, o.Flags)
	if err := compile(ctx, gcc, dir, flags, list); err != nil {
		return nil, err
	}
	link, libs := b.linkFlags()
	args := slices.Concat(flags, link, []string{"-o", elfFile})
	for _, f := range list {
		args = append(args, objectOf(f))
	}
	if err := run(ctx, dir, gcc, append(args, libs...)); err != nil {
		return nil, b.overflow(err)
	}
	uses, err := b.uses(filepath.Join(dir, elfFile))
	if err != nil {
		return nil, err
	}
	return &Built{ELF: filepath.Join(dir, elfFile), Uses: uses}, nil
}

// compile compiles the objects, several at a time; the first error ends it.
func compile(ctx context.Context, gcc, dir string, flags, list []string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wait sync.WaitGroup
	turns := make(chan struct{}, max(runtime.GOMAXPROCS(0), 1))
	for _, f := range list {
		turns <- struct{}{}
		wait.Go(func() {
			defer func() { <-turns }()
			if ctx.Err() != nil {
				return
			}
			if err := run(ctx, dir, gcc, append(slices.Clone(flags), "-c", "-o", objectOf(f), f)); err != nil {
				cancel(err)
			}
		})
	}
	wait.Wait()
	return context.Cause(ctx)
}

// run runs the compiler in a folder; its output becomes the error.
func run(ctx context.Context, dir, gcc string, args []string) error {
	c := exec.CommandContext(ctx, gcc, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "LC_ALL=C")
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	err := subprocess.Run(c)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, ok := errors.AsType[*exec.ExitError](err); !ok {
		return &BuildError{What: filepath.Base(gcc) + " does not run", Output: err.Error()}
	}
	text := said.String()
	const most = 4000
	if len(text) > most {
		text = text[:most] + " …"
	}
	return &BuildError{What: filepath.Base(gcc) + " failed", Output: text}
}

// overflowed matches GNU ld's message about a memory that is too small.
var overflowed = lazyregexp.New("region `([a-z0-9_]+)' overflowed by ([0-9]+) bytes")

// overflow adds sizes to the linker's message about a memory that is too small.
func (b *Board) overflow(err error) error {
	e, ok := errors.AsType[*BuildError](err)
	if !ok {
		return err
	}
	var parts []string
	for _, m := range overflowed.FindAllStringSubmatch(e.Output, 16) {
		over, bad := strconv.ParseInt(m[2], 10, 64)
		for _, mem := range b.Memories {
			if bad == nil && mem.Name == m[1] {
				part := fmt.Sprintf("its memory %s has %d bytes, needed are %d", mem.Name, mem.Size, int64(mem.Size)+over)
				if !slices.Contains(parts, part) {
					parts = append(parts, part)
				}
			}
		}
	}
	if parts == nil {
		return err
	}
	return &BuildError{What: "the model does not fit " + b.Name + ": " + strings.Join(parts, "; ")}
}

// uses reads the use of each memory from the sections of a program: the sections at run time, and
// the initial values of variables where they are stored.
func (b *Board) uses(path string) ([]Use, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer func() { _ = f.Close() }()
	all := make([]Use, len(b.Memories))
	for i, m := range b.Memories {
		all[i] = Use{Memory: m.Name, Size: int64(m.Size)}
		for _, s := range f.Sections {
			if s.Flags&elf.SHF_ALLOC != 0 && m.has(s.Addr) {
				all[i].Used = max(all[i].Used, int64(s.Addr+s.Size)-int64(m.Origin))
			}
		}
		for _, p := range f.Progs {
			if p.Type == elf.PT_LOAD && p.Filesz > 0 && m.has(p.Paddr) {
				all[i].Used = max(all[i].Used, int64(p.Paddr+p.Filesz)-int64(m.Origin))
			}
		}
	}
	return all, nil
}

// Image holds the sizes of a linked program in bytes.
type Image struct {
	Text  int64 // code and constants, weights included
	Data  int64 // initial values of variables, in flash and in RAM
	BSS   int64 // memory that is zero at the start, arena included
	Stack int64 // reserved, with that of the handlers
	// Compiler names what made it, "" if the program does not say.
	Compiler string
}

// Flash and RAM return what the program takes of both.
func (i *Image) Flash() int64 { return i.Text + i.Data }

// RAM includes the stack.
func (i *Image) RAM() int64 { return i.Data + i.BSS + i.Stack }

// stackSection is the name that the linker script gives the reserved stack.
const stackSection = ".stack"

// compilerSection is the name of the section in which compilers name themselves.
const compilerSection = ".comment"

// ReadImage reads the sizes of a program from its sections, as the program size does, and the stack
// by its name.
func ReadImage(path string) (*Image, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer func() { _ = f.Close() }()
	i := &Image{}
	for _, s := range f.Sections {
		n := int64(s.Size)
		switch {
		case s.Name == compilerSection && s.Size < 1<<16:
			b, err := s.Data()
			if err != nil {
				return nil, fmt.Errorf("%s: section %s: %w", path, compilerSection, err)
			}
			first, _, _ := bytes.Cut(bytes.TrimLeft(b, "\x00"), []byte{0})
			i.Compiler = string(first)
		case s.Flags&elf.SHF_ALLOC == 0:
		case s.Name == stackSection:
			i.Stack += n
		case s.Type == elf.SHT_NOBITS:
			i.BSS += n
		case s.Flags&elf.SHF_WRITE != 0:
			i.Data += n
		default:
			i.Text += n
		}
	}
	return i, nil
}

func (m *Memory) has(address uint64) bool {
	return address >= uint64(m.Origin) && address < uint64(m.Origin)+uint64(m.Size)
}

// Emulate returns the command line that runs a program on the emulated board, with the UART on
// standard output, or a *MissingError if QEMU is not installed.
func (b *Board) Emulate(elfPath string) ([]string, error) {
	if b.Emulator == nil {
		return nil, fmt.Errorf("%s has no emulator; flash the program and name the board's port", b.Name)
	}
	if _, err := exec.LookPath(emulatorName); err != nil {
		return nil, &MissingError{Program: emulatorName, Advice: emulatorAdvice}
	}
	return b.emulatorArgs(elfPath), nil
}

// Command joins a command line for a port "exec:". Words with a space or another special
// character of a shell are put in single quotes.
func Command(args []string) string {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = a
		if a == "" || strings.Trim(a, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+,.:/@%") != "" {
			words[i] = "'" + strings.ReplaceAll(a, "'", `'"'"'`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// Checked returns an error for a file that is not a program for the board.
func (b *Board) Checked(path string) error {
	file, _, err := infile.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	f, err := elf.NewFile(file)
	if err != nil || f.Machine != elf.EM_ARM || f.Class != elf.ELFCLASS32 {
		return fmt.Errorf("%s: is not an Arm program; expected what opmeter device firmware --build writes", path)
	}
	for _, p := range f.Progs {
		there := func(m Memory) bool { return m.has(p.Paddr) }
		if p.Type == elf.PT_LOAD && p.Filesz > 0 && !slices.ContainsFunc(b.Memories, there) {
			return fmt.Errorf("%s: is a program for another board: %s has no memory at 0x%08x", path, b.Name, p.Paddr)
		}
	}
	return nil
}
