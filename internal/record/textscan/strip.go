package textscan

import (
	"strings"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
)

// Parts of the prefixes below.
const (
	date  = `(?:\d{4}[-/]\d\d[-/]\d\d[T -]|\d\d[-/]\d\d[-/]\d{4}[T -]|\d\d-\d\d |(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d )`
	clock = `\d{1,2}:\d\d:\d\d(?:[.,:]\d{1,9}(?:,\d{3})?)?(?:Z| ?[-+]\d\d:?\d\d)?`
	level = `(?:VERBOSE|DEBUG|INFO|NOTICE|WARNING|WARN|ERROR|FATAL|INF|WRN|ERR|DBG)`
)

// prefixes matches what loggers and documents put before a line. At most one blank after a prefix
// belongs to it.
var prefixes = []*lazyregexp.Regexp{
	lazyregexp.New(`^(?:> ?)+`), // a quotation
	// logcat -v threadtime
	lazyregexp.New(`^\d\d-\d\d \d\d:\d\d:\d\d\.\d+\s+\d+\s+\d+ [VDIWEF] [^:]{0,60}: ?`),
	// logcat -v brief and -v tag
	lazyregexp.New(`^[VDIWEF]/[^(:]{1,60}(?:\(\s*\d+\))?: ?`),
	lazyregexp.New(`^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+\s+\d+ [^\]]{1,80}\] ?`), // glog
	// A time, with the host, process and thread of syslog and of Apple's log.
	lazyregexp.New(`^` + date + clock + ` (?:(?:[\w.-]+ )?[\w.()-]+\[\d+(?::[\da-fx]+)?\]:?(?: |$))?`),
	lazyregexp.New(`^` + clock + ` (?:-> ?)?`), // a serial monitor
	lazyregexp.New(`^\[` + date + `?` + clock + `\](?: |$)`),
	lazyregexp.New(`^\[\d{1,6}[:.]\d\d[:.]\d\d[.,]\d{1,6}\] ?`),
	lazyregexp.New(`^\[ *\d+\.\d{3,6}\] `), // seconds since the start
	// log stream of Apple: thread, type, activity, process, time to live, name.
	lazyregexp.New(`^0x[\da-f]+ +\w+ +0x[\da-f]+ +\d+ +\d+ +[^:]{1,60}: `),
	lazyregexp.New(`^` + level + `:[A-Za-z_][\w.]{0,60}: ?`), // Python's logging, its default
	lazyregexp.New(`^` + level + `: ?`),
	lazyregexp.New(`^\[ ?(?:` + level + `|[VDIWEF]) ?\] ?`),
	lazyregexp.New(`^<(?:inf|wrn|err|dbg)> [\w.-]{1,60}: ?`), // Zephyr
	lazyregexp.New(`^[VDIWE] \(\d+\) [^:\s]{1,60}: ?`),       // ESP-IDF
	lazyregexp.New(`^(?:- )?[\w.]+ - ` + level + ` - ?`),     // Python's logging
}

// begins holds the first bytes of all prefixes; most lines start with none of them.
var begins = func() (t [256]bool) {
	for _, c := range []byte("0123456789VDIWEFNJMASO[>(<-") {
		t[c] = true
	}
	return t
}()

// Strip removes what loggers and documents put before a line: times, levels, names of programs,
// quotation marks, and the indentation before these. Blanks after the prefix stay, and so does the
// indentation of a line without a prefix.
func Strip(line string) string {
	for range 6 {
		inner := strings.TrimLeft(line, " \t")
		if inner == "" || !begins[inner[0]] && (inner[0] < 'a' || inner[0] > 'z' || !strings.Contains(inner, " - ")) {
			return line
		}
		before := inner
		for _, p := range prefixes {
			if at := p.FindStringIndex(inner); at != nil {
				inner = inner[at[1]:]
				break
			}
		}
		if inner == before {
			return line
		}
		line = inner
	}
	return line
}
