package port

import (
	"fmt"
	"net"
	"runtime"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
)

// Kind is a kind of port.
type Kind string

// Kinds of ports.
const (
	Serial Kind = "serial" // a serial port: Name is /dev/ttyACM0 or COM3
	TCP    Kind = "tcp"    // a TCP connection: HOST:PORT
	Exec   Kind = "exec"   // the output of a program: a command line
	Stdin  Kind = "stdin"  // standard input: ""
	File   Kind = "file"   // what was received before: a path
)

// Address identifies a port.
type Address struct {
	Kind Kind
	Name string
}

// String returns the form that [Parse] accepts.
func (a Address) String() string {
	switch a.Kind {
	case Stdin:
		return "-"
	case Serial:
		return a.Name
	}
	return string(a.Kind) + ":" + a.Name
}

// expected describes what Parse accepts.
const expected = "use a device such as /dev/ttyACM0 or COM3, tcp:HOST:PORT, exec:COMMAND, file:PATH, or - for standard input"

// longestName is the maximum length of an address in bytes.
const longestName = 64 << 10

var (
	comName   = lazyregexp.New(`(?i)^(\\\\[.?]\\)?com([1-9][0-9]{0,3})$`)
	ttyName   = lazyregexp.New(`^(tty|cu)[A-Za-z.][A-Za-z0-9._-]*$`)
	kindName  = lazyregexp.New(`^([A-Za-z][A-Za-z0-9+]{1,15}):`)
	pathStart = lazyregexp.New(`^([./~]|[A-Za-z]:[\\/])`)
)

// Parse parses a port as written by a user: "/dev/ttyACM0", "COM3", "tcp:HOST:PORT",
// "exec:COMMAND", "-", "file:PATH". It examines only the text.
func Parse(s string) (Address, error) {
	switch {
	case s == "":
		return Address{}, fmt.Errorf("a port is missing: %s", expected)
	case s == "-":
		return Address{Kind: Stdin}, nil
	case len(s) > longestName:
		return Address{}, fmt.Errorf("the name of a port has %d bytes, at most %d are taken", len(s), longestName)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\t' && r != '\n' }):
		return Address{}, fmt.Errorf("port %q has characters that no name has: %s", clip(s, 60), expected)
	}
	if m := comName.FindStringSubmatch(s); m != nil {
		return Address{Serial, "COM" + m[2]}, nil
	}
	kind, rest, _ := strings.Cut(s, ":")
	switch Kind(kind) {
	case TCP:
		return parseTCP(rest)
	case Exec:
		if _, err := split(rest, runtime.GOOS == "windows"); err != nil {
			return Address{}, fmt.Errorf("port exec:%s: %w", clip(rest, 60), err)
		}
		return Address{Exec, rest}, nil
	case File:
		if rest == "" {
			return Address{}, fmt.Errorf("port %q: a path is missing, as in file:board.rec", s)
		}
		return Address{File, rest}, nil
	}
	return parseSerial(s)
}

// parseSerial treats text of no other kind as a device.
func parseSerial(s string) (Address, error) {
	if m := kindName.FindStringSubmatch(s); m != nil && !pathStart.MatchString(s) {
		return Address{}, fmt.Errorf("port %q: %q is not a kind of port: %s", clip(s, 60), m[1], expected)
	}
	if strings.ContainsAny(s, "\t\n") {
		return Address{}, fmt.Errorf("port %q has characters that no name has: %s", clip(s, 60), expected)
	}
	if pathStart.MatchString(s) {
		return Address{Serial, s}, nil
	}
	if ttyName.MatchString(s) && runtime.GOOS != "windows" {
		return Address{Serial, "/dev/" + s}, nil
	}
	return Address{}, fmt.Errorf("port %q is not a device: %s", clip(s, 60), expected)
}

func parseTCP(s string) (Address, error) {
	fail := func(why string) (Address, error) {
		return Address{}, fmt.Errorf("port tcp:%s: %s: write tcp:HOST:PORT, as in tcp:localhost:4444 or tcp:[::1]:4444", clip(s, 60), why)
	}
	if strings.HasPrefix(s, "//") {
		return fail("there is no // in it")
	}
	host, number, err := net.SplitHostPort(s)
	if err != nil {
		return fail("a host and a port are expected")
	}
	if host == "" {
		return fail("the host is missing")
	}
	if strings.ContainsFunc(host, func(r rune) bool { return unicode.IsSpace(r) || r == '/' || r == '[' || r == ']' }) {
		return fail("this is not a host name")
	}
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil || n == 0 {
		return fail("the port is a number from 1 to 65535")
	}
	return Address{TCP, net.JoinHostPort(host, strconv.FormatUint(n, 10))}, nil
}

// clip shortens a text for an error.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}
