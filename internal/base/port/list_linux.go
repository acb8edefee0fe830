package port

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// connected lists the ports known to the kernel.
func connected() ([]Info, error) { return connectedIn("/sys", "/dev") }

// connectedIn lists the ports in a sysfs tree. The kernel describes the device behind each port,
// so that none has to be opened, which would reset boards.
func connectedIn(sys, dev string) ([]Info, error) {
	entries, err := os.ReadDir(filepath.Join(sys, "class", "tty"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // a container without sysfs entries
	}
	if err != nil {
		return nil, err
	}
	links := byID(dev)
	var list []Info
	for _, e := range entries {
		dir := filepath.Join(sys, "class", "tty", e.Name())
		device, err := filepath.EvalSymlinks(filepath.Join(dir, "device"))
		if err != nil {
			continue // a console or pseudo-terminal without a device
		}
		// Type 0 is an unused slot of a legacy serial port.
		if line(filepath.Join(dir, "type")) == "0" {
			continue
		}
		i := Info{Name: filepath.Join(dev, e.Name())}
		usbFacts(&i, sys, device)
		i.Link = links[i.Name]
		if _, err := os.Stat(i.Name); errors.Is(err, fs.ErrNotExist) {
			i.Access = NoNode
		}
		list = append(list, i)
	}
	return list, nil
}

// usbFacts reads the attributes of the port's USB device, which is several levels above the port.
func usbFacts(i *Info, sys, device string) {
	top, err := filepath.EvalSymlinks(sys)
	if err != nil {
		return
	}
	for range 8 {
		if vid, err := strconv.ParseUint(line(filepath.Join(device, "idVendor")), 16, 16); err == nil {
			pid, err := strconv.ParseUint(line(filepath.Join(device, "idProduct")), 16, 16)
			if err != nil {
				return
			}
			i.USB, i.VID, i.PID = true, uint16(vid), uint16(pid)
			i.Serial = line(filepath.Join(device, "serial"))
			i.Product = line(filepath.Join(device, "product"))
			i.Manufacturer = line(filepath.Join(device, "manufacturer"))
			return
		}
		if device = filepath.Dir(device); device == top || len(device) <= len(top) {
			return
		}
	}
}

// line reads the line of a small kernel file, "" if absent.
func line(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	b := make([]byte, 256)
	n, err := f.Read(b)
	if err != nil {
		return ""
	}
	s, _, _ := strings.Cut(string(b[:n]), "\n")
	return strings.TrimSpace(oneLine(s))
}

// byID maps devices to their names by manufacturer and serial number.
func byID(dev string) map[string]string {
	m := map[string]string{}
	dir := filepath.Join(dev, "serial", "by-id")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return m
	}
	for _, e := range entries {
		link := filepath.Join(dir, e.Name())
		if to, err := filepath.EvalSymlinks(link); err == nil {
			m[to] = link
		}
	}
	return m
}

// access reports whether this user may open a device.
func access(path string) Access {
	if unix.Access(path, unix.R_OK|unix.W_OK) != nil {
		return Denied
	}
	return Allowed
}

// terminal reports whether a device can be a serial port, as far as the kernel shows.
func terminal(st fs.FileInfo) bool {
	s, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return true
	}
	sub, err := filepath.EvalSymlinks(fmt.Sprintf("/sys/dev/char/%d:%d/subsystem", unix.Major(s.Rdev), unix.Minor(s.Rdev)))
	// Pseudo-terminals are absent from sysfs.
	return err != nil || filepath.Base(sub) == "tty"
}
