package port

import (
	"bytes"
	"errors"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		want Address
	}{
		{"/dev/ttyACM0", Address{Serial, "/dev/ttyACM0"}},
		{"/dev/serial/by-id/usb-Arduino_Nano-if00", Address{Serial, "/dev/serial/by-id/usb-Arduino_Nano-if00"}},
		{"/dev/cu.usbmodem101", Address{Serial, "/dev/cu.usbmodem101"}},
		{"./vmodem0", Address{Serial, "./vmodem0"}},
		{"COM3", Address{Serial, "COM3"}},
		{"com12", Address{Serial, "COM12"}},
		{`\\.\COM12`, Address{Serial, "COM12"}},
		{"tcp:localhost:4444", Address{TCP, "localhost:4444"}},
		{"tcp:[::1]:4444", Address{TCP, "[::1]:4444"}},
		{"tcp:10.0.0.7:04444", Address{TCP, "10.0.0.7:4444"}},
		{"exec:./pack --runs 3", Address{Exec, "./pack --runs 3"}},
		{"exec:a | b", Address{Exec, "a | b"}},
		{"-", Address{Stdin, ""}},
		{"file:board.rec", Address{File, "board.rec"}},
		{"file:-", Address{File, "-"}},
		{"file:C:\\a b.rec", Address{File, "C:\\a b.rec"}},
	} {
		got, err := Parse(c.in)
		if err != nil || got != c.want {
			t.Errorf("%q: got %+v, %v, want %+v", c.in, got, err, c.want)
		}
		again, err := Parse(got.String())
		if err != nil || again != got {
			t.Errorf("%q: %q is read as %+v, %v", c.in, got.String(), again, err)
		}
	}
	if runtime.GOOS != "windows" {
		if got, err := Parse("ttyUSB3"); err != nil || got != (Address{Serial, "/dev/ttyUSB3"}) {
			t.Errorf("ttyUSB3: got %+v, %v", got, err)
		}
	}
}

// A wrong name is told with what was expected, whole.
func TestParseErrors(t *testing.T) {
	t.Parallel()
	const use = "use a device such as /dev/ttyACM0 or COM3, tcp:HOST:PORT, exec:COMMAND, file:PATH, or - for standard input"
	const tcp = ": write tcp:HOST:PORT, as in tcp:localhost:4444 or tcp:[::1]:4444"
	for in, want := range map[string]string{
		"":                    "a port is missing: " + use,
		"board":               `port "board" is not a device: ` + use,
		"COM":                 `port "COM" is not a device: ` + use,
		"COM0":                `port "COM0" is not a device: ` + use,
		"udp:host:1":          `port "udp:host:1": "udp" is not a kind of port: ` + use,
		"http://host":         `port "http://host": "http" is not a kind of port: ` + use,
		"serial:/dev/ttyACM0": `port "serial:/dev/ttyACM0": "serial" is not a kind of port: ` + use,
		"/dev/tty\x00":        `port "/dev/tty\x00" has characters that no name has: ` + use,
		"tcp:":                "port tcp:: a host and a port are expected" + tcp,
		"tcp:host":            "port tcp:host: a host and a port are expected" + tcp,
		"tcp::1":              "port tcp::1: the host is missing" + tcp,
		"tcp:host:0":          "port tcp:host:0: the port is a number from 1 to 65535" + tcp,
		"tcp:host:65536":      "port tcp:host:65536: the port is a number from 1 to 65535" + tcp,
		"tcp://host:1":        "port tcp://host:1: there is no // in it" + tcp,
		"exec:":               "port exec:: a command is missing, as in exec:./pack",
		"exec:  ":             "port exec:  : a command is missing, as in exec:./pack",
		"exec:a 'b":           "port exec:a 'b: a quote is not closed",
		"file:":               `port "file:": a path is missing, as in file:board.rec`,
	} {
		a, err := Parse(in)
		if err == nil || err.Error() != want {
			t.Errorf("%q: got %+v, %v, want the error %q", in, a, err, want)
		}
	}
	if _, err := Parse(strings.Repeat("/", longestName+1)); err == nil {
		t.Error("a name of any length is taken")
	}
}

// Commands are cut as the shell cuts them: its own words, told by itself, are the measure.
func TestSplitAsShell(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell here")
	}
	for _, s := range []string{
		"a b  c", "  a\tb ", `a 'b c' d`, `a "b c" d`, `a b\ c`, `a "b \" c"`, `a "b \x c"`, `a 'b \x'`, `a ''`, `a "" b`,
		`a'b'"c"d`, `a \\ \'`, `a "\\"`, `a 'x"y' "x'y"`, `"a b" c`, `a = b#c`, `a "\$x"`,
	} {
		w, err := split(s, false)
		if err != nil || w.shell {
			t.Errorf("%s: %v, shell %v", s, err, w.shell)
			continue
		}
		out, err := exec.CommandContext(t.Context(), sh, "-c", `printf '%s\000' `+s).Output()
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		if !slices.Equal(w.list, want) {
			t.Errorf("%s: got %q, the shell has %q", s, w.list, want)
		}
	}
	for _, s := range []string{"a | b", "a > f", "a $HOME", `a "$HOME"`, "a *.txt", "~/a", "a; b", "a &", "(a)", "a `b`", "a\nb"} {
		if w, err := split(s, false); err != nil || !w.shell {
			t.Errorf("%s: %v, shell %v", s, err, w.shell)
		}
	}
	for _, s := range []string{"'a|b'", `a "b > c"`, `a \| b`, "a b~c"} {
		if w, err := split(s, false); err != nil || w.shell {
			t.Errorf("%s: %v, shell %v", s, err, w.shell)
		}
	}
	if w, err := split(`C:\pack\run.exe "a b"`, true); err != nil || !slices.Equal(w.list, []string{`C:\pack\run.exe`, "a b"}) {
		t.Errorf("of Windows: %q, %v", w.list, err)
	}
}

// Whatever is written for a port is refused or comes back the same from its own text.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"-", "COM3", "/dev/ttyACM0", "tcp:[::1]:1", "exec:a 'b' \"c\" \\d | e", "file:x", "ttyS0", "udp:1", "", "\\\\.\\COM1", "tcp:a%b:1", "C:/x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := Parse(s)
		if err != nil {
			if len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\x00\x1b") {
				t.Errorf("%q: error %q", s, err)
			}
			return
		}
		if again, err := Parse(a.String()); err != nil || again != a {
			t.Errorf("%q is %+v, and that is %+v, %v", s, a, again, err)
		}
		if a.Kind == Exec {
			if w, err := split(a.Name, runtime.GOOS == "windows"); err != nil || len(w.list) == 0 || w.list[0] == "" {
				t.Errorf("%q: %q, %v", s, w.list, err)
			}
		}
		if a.Kind != Stdin && a.Name == "" {
			t.Errorf("%q: an address without a name", s)
		}
	})
}

// A table that is read is one where every line counts.
func TestBoards(t *testing.T) {
	t.Parallel()
	m, err := parseBoards(boardsText)
	if err != nil || len(m) < 40 {
		t.Fatalf("%d boards, %v", len(m), err)
	}
	for _, c := range []struct {
		vid, pid uint16
		want     string
	}{
		{0x2341, 0x805a, "Arduino Nano 33 BLE"},
		{0x0483, 0x374b, "ST-LINK/V2.1 (STM32 Nucleo, Discovery)"},
		{0x303a, 0x1001, "Espressif chip (USB-JTAG of ESP32-S3, C3, C6, H2)"},
		{0x303a, 0x8123, "Espressif board"},
		{0x1366, 0x1055, "SEGGER J-Link (Silicon Labs, Nordic, Ambiq kits)"},
		{0x0d28, 0x0204, "DAPLink (Arm Mbed boards, micro:bit)"},
		{0x0d28, 0x0205, ""},
		{0, 0, ""},
	} {
		if got := board(c.vid, c.pid); got != c.want {
			t.Errorf("%04x:%04x: got %q, want %q", c.vid, c.pid, got, c.want)
		}
	}
	for _, bad := range []string{"0483:374b", "483374b x", "0483:374b x\n0483:374b y", "zzzz:0000 x", "0483:374B x", "0483:zzzz x"} {
		if _, err := parseBoards(bad); err == nil {
			t.Errorf("%q is a table", bad)
		}
	}
}

// The queue holds what it says and no more, keeps order, and knows a gap.
func TestQueue(t *testing.T) {
	t.Parallel()
	q := newQueue()
	var want []byte
	for i := range 3000 {
		p := bytes.Repeat([]byte{byte(i)}, i%97)
		if err := q.put(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		want = append(want, p...)
	}
	q.gap()
	q.gap()
	q.finish(errHeld)
	var got []byte
	p := make([]byte, 1000)
	for {
		n, err, done := q.take(p)
		if !done {
			t.Fatal("nothing is there")
		}
		got = append(got, p[:n]...)
		if err != nil {
			if !errors.Is(err, ErrReopened) {
				t.Fatal(err)
			}
			break
		}
	}
	if !bytes.Equal(got, want) {
		t.Error("other bytes come out")
	}
	if _, err, done := q.take(p); !done || !errors.Is(err, errHeld) || q.held != 0 {
		t.Errorf("at the end: %v, %v, %d held", err, done, q.held)
	}
}
