//go:build windows || (darwin && cgo)

package port

import (
	"strconv"

	"go.bug.st/serial/enumerator"
)

// connected lists the ports with the system's API.
func connected() ([]Info, error) {
	ports, err := enumerator.GetDetailedPortsList()
	if err != nil {
		return nil, err
	}
	var list []Info
	for _, p := range ports {
		if hidden(p.Name) {
			continue
		}
		i := Info{Name: p.Name, USB: p.IsUSB, Serial: p.SerialNumber, Product: p.Product, Manufacturer: p.Manufacturer, Access: Allowed}
		if p.IsUSB {
			vid, verr := strconv.ParseUint(p.VID, 16, 16)
			pid, perr := strconv.ParseUint(p.PID, 16, 16)
			if verr != nil || perr != nil {
				i.USB = false
			}
			i.VID, i.PID = uint16(vid), uint16(pid)
		}
		list = append(list, i)
	}
	return list, nil
}
