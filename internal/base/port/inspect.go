package port

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
)

// Inspection is what can be found out about a serial device without opening it.
type Inspection struct {
	// Name is the requested name, Path the device that it resolves to.
	Name, Path string
	Exists     bool
	// Pseudo says that it is a pseudo-terminal: a program simulates the device.
	Pseudo bool
	// Kind names the kind of a file that is not a device, such as "a folder"; "" for a device.
	Kind string
	// Access says whether this user may open it.
	Access Access
	// Owner, Group and Mode are the attributes of the device file, "" if not applicable.
	Owner, Group string
	Mode         fs.FileMode
	// User is the current user, "" if unknown.
	User string
	// InGroup says that the user is in Group in the system's list, Effective that the current
	// login already has the group.
	InGroup, Effective bool
	// Holders are the processes that have it open, as far as visible.
	Holders []Holder
	// Info is the device's entry in the list of ports, nil for none.
	Info *Info

	file fs.FileInfo
}

// Inspect examines a serial device without opening it.
func Inspect(name string) Inspection {
	i := inspect(name)
	if i.Exists && i.Kind == "" {
		if h := lockedBy("", i.Path); h != nil {
			i.Holders = append(i.Holders, *h)
		}
		for _, h := range holders(i.Path) {
			if len(i.Holders) == 0 || i.Holders[0].PID != h.PID {
				i.Holders = append(i.Holders, h)
			}
		}
	}
	return i
}

// info finds the device in the list of ports.
func (i *Inspection) info() {
	list, err := connected()
	if err != nil {
		return
	}
	for k := range list {
		if list[k].Name == i.Path {
			list[k].Board = board(list[k].VID, list[k].PID)
			i.Info = &list[k]
			return
		}
	}
}

// refusal returns the reason why the device cannot be opened, if it is evident in advance,
// otherwise nil.
func (i *Inspection) refusal(a Address) *OpenError {
	switch {
	case !i.Exists:
		return &OpenError{Address: a, Cause: Missing, Advice: missingAdvice(a.Name), Err: fs.ErrNotExist}
	case i.Kind == "a file":
		return &OpenError{Address: a, Cause: NotSerial, Err: errors.New("it is a file"), Advice: "file:" + clip(a.Name, 200) + " replays a recording"}
	case i.Kind != "":
		return &OpenError{Address: a, Cause: NotSerial, Err: fmt.Errorf("it is %s", i.Kind)}
	}
	return nil
}

// PermissionAdvice says how this user can get access to the device, "" if access is not the
// problem.
func (i *Inspection) PermissionAdvice() string {
	if i.Access != Denied {
		return ""
	}
	return i.permissionAdvice()
}

// permissionAdvice is PermissionAdvice after the system has denied access.
func (i *Inspection) permissionAdvice() string {
	if runtime.GOOS == "windows" {
		return "close other programs that use the port, such as a serial monitor"
	}
	user := i.User
	if user == "" {
		user = "$USER"
	}
	once := "; or for now sudo chmod a+rw " + i.Path
	shared := i.Mode&0o060 == 0o060 && i.Group != "" && i.Group != "root"
	switch {
	case shared && i.InGroup && !i.Effective:
		return fmt.Sprintf("you are in the group %s, but this login is older: log out and in again, or run newgrp %s", i.Group, i.Group)
	case shared && !i.InGroup:
		return fmt.Sprintf("it belongs to the group %s: sudo usermod -aG %s %s, then log out and in again%s", i.Group, i.Group, user, once)
	}
	if rule := i.udevRule(); rule != "" && runtime.GOOS == "linux" {
		return fmt.Sprintf("its file is for %s alone: echo '%s' | sudo tee /etc/udev/rules.d/70-serial.rules, then plug it in again%s", owner(i.Owner), rule, once)
	}
	return strings.TrimPrefix(once, "; or for now ")
}

func owner(name string) string {
	if name == "" {
		return "its owner"
	}
	return name
}

// udevRule returns the rule that lets the user at the computer open the device.
func (i *Inspection) udevRule() string {
	if i.Info == nil || !i.Info.USB {
		return ""
	}
	return fmt.Sprintf(`SUBSYSTEM=="tty", ATTRS{idVendor}=="%04x", ATTRS{idProduct}=="%04x", MODE="0660", TAG+="uaccess"`, i.Info.VID, i.Info.PID)
}
