package port

import (
	"io/fs"
	"slices"

	"go.bug.st/serial"
)

// inspect looks a port up in the system's list: port names are not files.
func inspect(name string) Inspection {
	i := Inspection{Name: name, Path: name}
	names, err := serial.GetPortsList()
	i.Exists = err != nil || slices.Contains(names, name)
	if i.Exists {
		i.info()
	}
	return i
}

// stillThere returns an error if the driver no longer answers.
func stillThere(_ string, _ fs.FileInfo, p serial.Port) error {
	_, err := p.GetModemStatusBits()
	return err
}
