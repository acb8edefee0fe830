package wire

import "golang.org/x/sys/unix"

// TCGETS2 tells speeds that have no code of their own, too.
const (
	getTermios = unix.TCGETS2
	setTermios = unix.TCSETS2
)

func baud(s *unix.Termios) int { return int(s.Ospeed) }

// noSpeed sets no speed, which hosts never do.
func noSpeed(s *unix.Termios) {
	s.Cflag &^= unix.CBAUD
	s.Ispeed, s.Ospeed = 0, 0
}
