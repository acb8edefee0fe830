package port

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
)

// Access says whether this user may open a port.
type Access string

// Values of Access.
const (
	Allowed Access = "ok"
	Denied  Access = "permission" // the user may not
	// the system has the device, but no file for it, as in a container
	NoNode     Access = "no-node"
	NotChecked Access = ""
)

// Info is a connected serial port.
type Info struct {
	// Name is the name to open: /dev/ttyACM0, COM3.
	Name string `json:"name"`
	// Link is a stable name, independent of where the device is plugged in, "" for none.
	Link string `json:"link,omitzero"`
	// USB says that the following ids and texts of a USB device are set.
	USB          bool   `json:"usb"`
	VID          uint16 `json:"vid,omitzero"`
	PID          uint16 `json:"pid,omitzero"`
	Serial       string `json:"serial,omitzero"`
	Product      string `json:"product,omitzero"`
	Manufacturer string `json:"manufacturer,omitzero"`
	// Board is a guess by the USB ids, "" if unknown.
	Board string `json:"board,omitzero"`
	// Access says whether this user may open it.
	Access Access `json:"access,omitzero"`
	// Busy names the programs that have it open, "" if none is visible.
	Busy string `json:"busy,omitzero"`
	// Holders lists the same by process.
	Holders []Holder `json:"holders,omitzero"`
}

// Title returns the best short name of the device: the board, the product, or "".
func (i Info) Title() string {
	// A product that names its board is more specific than a guess from the USB bridge.
	generic := i.Board == "" || strings.HasSuffix(i.Board, " bridge") || strings.HasSuffix(i.Board, " board")
	if i.Product != "" && generic {
		return i.Product
	}
	return cmp.Or(i.Board, i.Product)
}

// Numbers returns the USB ids in the usual format, "" if absent.
func (i Info) Numbers() string {
	if !i.USB {
		return ""
	}
	return fmt.Sprintf("%04x:%04x", i.VID, i.PID)
}

// List returns the connected serial ports, by name, with the processes that use them. It opens
// none of them.
func List() ([]Info, error) {
	list, err := connected()
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(list))
	for i := range list {
		paths[i] = list[i].Name
	}
	held := holdersOf(paths)
	for i := range list {
		p := &list[i]
		if p.USB {
			p.Board = board(p.VID, p.PID)
		}
		if p.Access == NotChecked {
			p.Access = access(p.Name)
		}
		if h := lockedBy("", p.Name); h != nil {
			p.Holders = append(p.Holders, *h)
		}
		for _, h := range held[p.Name] {
			if !slices.ContainsFunc(p.Holders, func(o Holder) bool { return o.PID == h.PID }) {
				p.Holders = append(p.Holders, h)
			}
		}
		p.Busy = holderNames(p.Holders)
	}
	sorting.Func(list, func(a, b Info) int { return natural(a.Name, b.Name) })
	return list, nil
}

// natural orders names with numbers numerically: ttyUSB2 before ttyUSB10.
func natural(a, b string) int {
	cut := func(s string) (string, string) {
		t := strings.TrimRight(s, "0123456789")
		return t, strings.TrimLeft(s[len(t):], "0")
	}
	at, an := cut(a)
	bt, bn := cut(b)
	return cmp.Or(cmp.Compare(at, bt), cmp.Compare(len(an), len(bn)), cmp.Compare(an, bn), cmp.Compare(a, b))
}

// missingAdvice says what to do about a missing device.
func missingAdvice(name string) string {
	if comName.MatchString(name) && runtime.GOOS != "windows" {
		return "COM names are those of Windows: opmeter devices lists what is connected here"
	}
	list, err := connected()
	if err != nil || len(list) == 0 {
		return "no serial port is connected: check the cable (some only charge) and the board's power; opmeter devices says more"
	}
	names := make([]string, 0, len(list))
	for _, i := range list[:min(len(list), 4)] {
		i.Board = board(i.VID, i.PID)
		if t := i.Title(); t != "" {
			names = append(names, i.Name+" ("+t+")")
		} else {
			names = append(names, i.Name)
		}
	}
	if n := len(list) - len(names); n > 0 {
		names = append(names, fmt.Sprintf("%d more", n))
	}
	return "connected: " + strings.Join(names, ", ")
}
