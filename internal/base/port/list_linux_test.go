package port

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree writes files below a folder, "" for a folder; names behind "-> " are links.
func tree(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		switch {
		case text == "":
			err = os.MkdirAll(path, 0o755)
		case len(text) > 3 && text[:3] == "-> ":
			err = os.Symlink(text[3:], path)
		default:
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A tree as kernels have it: a device with USB of its own, a bridge, a real port of the
// board, places without one, a console, and a bridge whose device file is missing.
func TestConnected(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	tree(t, root, map[string]string{
		"sys/devices/usb1/1-1/idVendor":                   "2341\n",
		"sys/devices/usb1/1-1/idProduct":                  "805a\n",
		"sys/devices/usb1/1-1/product":                    "Nano 33 BLE\n",
		"sys/devices/usb1/1-1/manufacturer":               "Arduino\n",
		"sys/devices/usb1/1-1/serial":                     "AB12\n",
		"sys/devices/usb1/1-1/1-1:1.0/x":                  "x",
		"sys/class/tty/ttyACM0/device":                    "-> ../../../devices/usb1/1-1/1-1:1.0",
		"sys/devices/usb1/1-2/idVendor":                   "10c4\n",
		"sys/devices/usb1/1-2/idProduct":                  "ea60\n",
		"sys/devices/usb1/1-2/1-2:1.0/ttyUSB10/x":         "x",
		"sys/class/tty/ttyUSB10/device":                   "-> ../../../devices/usb1/1-2/1-2:1.0/ttyUSB10",
		"sys/devices/usb1/1-3/idVendor":                   "zz\n",
		"sys/devices/usb1/1-3/1-3:1.0/x":                  "x",
		"sys/class/tty/ttyUSB2/device":                    "-> ../../../devices/usb1/1-3/1-3:1.0",
		"sys/devices/platform/uart/x":                     "x",
		"sys/class/tty/ttyS0/type":                        "4\n",
		"sys/class/tty/ttyS0/device":                      "-> ../../../devices/platform/uart",
		"sys/class/tty/ttyS1/type":                        "0\n",
		"sys/class/tty/ttyS1/device":                      "-> ../../../devices/platform/uart",
		"sys/class/tty/tty1/dev":                          "4:1\n",
		"dev/ttyACM0":                                     "x",
		"dev/ttyS0":                                       "x",
		"dev/ttyUSB10":                                    "x",
		"dev/serial/by-id/usb-Arduino_Nano_33_BLE_AB12-0": "-> ../../ttyACM0",
	})
	dev := filepath.Join(root, "dev")
	got, err := connectedIn(filepath.Join(root, "sys"), dev)
	if err != nil {
		t.Fatal(err)
	}
	want := []Info{
		{
			Name: filepath.Join(dev, "ttyACM0"), Link: filepath.Join(dev, "serial/by-id/usb-Arduino_Nano_33_BLE_AB12-0"),
			USB: true, VID: 0x2341, PID: 0x805a, Serial: "AB12", Product: "Nano 33 BLE", Manufacturer: "Arduino",
		},
		{Name: filepath.Join(dev, "ttyS0")},
		{Name: filepath.Join(dev, "ttyUSB10"), USB: true, VID: 0x10c4, PID: 0xea60},
		{Name: filepath.Join(dev, "ttyUSB2"), Access: NoNode},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if list, err := connectedIn(filepath.Join(root, "nowhere"), dev); err != nil || list != nil {
		t.Errorf("without the kernel's files: %v, %v", list, err)
	}
}

// Who has a device is read from the kernel's list of open files.
func TestHoldersIn(t *testing.T) {
	t.Parallel()
	proc := t.TempDir()
	tree(t, proc, map[string]string{
		"12/comm":                           "minicom\n",
		"12/fd/0":                           "-> /dev/null",
		"12/fd/3":                           "-> /dev/ttyACM0",
		"12/fd/4":                           "-> /dev/ttyACM0",
		"13/comm":                           "cat\n",
		"13/fd/1":                           "-> /dev/ttyACM1",
		"14/comm":                           "gone\n",
		"self/fd/":                          "",
		strconv.Itoa(os.Getpid()) + "/fd/3": "-> /dev/ttyACM0",
	})
	got := holdersIn(proc, []string{"/dev/ttyACM0", "/dev/ttyACM1", "/dev/ttyACM2"})
	want := map[string][]Holder{"/dev/ttyACM0": {{PID: 12, Program: "minicom"}}, "/dev/ttyACM1": {{PID: 13, Program: "cat"}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestPermissionAdvice(t *testing.T) {
	t.Parallel()
	usb := &Info{USB: true, VID: 0x2341, PID: 0x805a}
	for _, c := range []struct {
		i    Inspection
		want string
	}{
		{
			Inspection{Path: "/dev/ttyACM0", Access: Denied, Owner: "root", Group: "dialout", Mode: 0o660, User: "ann"},
			"it belongs to the group dialout: sudo usermod -aG dialout ann, then log out and in again; or for now sudo chmod a+rw /dev/ttyACM0",
		},
		{
			Inspection{Path: "/dev/ttyACM0", Access: Denied, Owner: "root", Group: "dialout", Mode: 0o660, User: "ann", InGroup: true},
			"you are in the group dialout, but this login is older: log out and in again, or run newgrp dialout",
		},
		{
			Inspection{Path: "/dev/ttyACM0", Access: Denied, Owner: "root", Group: "root", Mode: 0o600, User: "ann", Info: usb},
			`its file is for root alone: echo 'SUBSYSTEM=="tty", ATTRS{idVendor}=="2341", ATTRS{idProduct}=="805a", MODE="0660", TAG+="uaccess"' | sudo tee /etc/udev/rules.d/70-serial.rules, then plug it in again; or for now sudo chmod a+rw /dev/ttyACM0`,
		},
		{Inspection{Path: "/dev/ttyS0", Access: Denied, Owner: "root", Group: "root", Mode: 0o600}, "sudo chmod a+rw /dev/ttyS0"},
		{Inspection{Path: "/dev/ttyS0", Access: Allowed}, ""},
	} {
		if got := c.i.PermissionAdvice(); got != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.i, got, c.want)
		}
	}
}

func TestNatural(t *testing.T) {
	t.Parallel()
	in := []string{"/dev/ttyACM0", "/dev/ttyUSB0", "/dev/ttyUSB2", "/dev/ttyUSB10", "COM9", "COM10"}
	for _, p := range [][2]int{{0, 1}, {1, 2}, {2, 3}, {4, 5}} {
		if natural(in[p[0]], in[p[1]]) >= 0 || natural(in[p[1]], in[p[0]]) <= 0 {
			t.Errorf("%s does not come before %s", in[p[0]], in[p[1]])
		}
	}
}
