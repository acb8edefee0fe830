package chip

// Target is a chip or generic core, with its figures and their calibration.
type Target struct {
	// Inherits is the id of the target that provides omitted facts and figures, "" for none.
	// Lists are inherited as a whole.
	Inherits string `yaml:"inherits"`
	// ID names the target on the command line: lower case, digits and dashes.
	ID string `yaml:"id,required"`
	// Name is the display name.
	Name string `yaml:"name,required"`
	// Vendor of the chip, empty for generic cores.
	Vendor string `yaml:"vendor"`
	// Description is a sentence about its special properties.
	Description string `yaml:"description"`
	// Core is the processor.
	Core Core `yaml:"core,required"`
	// Clock is the range of the processor's clock.
	Clock Clock `yaml:"clock,required"`
	// Memories lists the memories available to a model.
	Memories []Memory `yaml:"memories"`
	// Supply is the electrical state of the energy figures.
	Supply *Supply `yaml:"supply"`
	// Energy is the power model, nil if absent.
	Energy *Energy `yaml:"energy"`
	// Accelerator is the accelerator, nil if absent.
	Accelerator *Accelerator `yaml:"accelerator"`
	// Runtimes lists runtime families with figures; the first is the default.
	Runtimes []Runtime `yaml:"runtimes,required"`
	// Sources lists the sources of the facts.
	Sources []string `yaml:"sources"`

	// File is the file that the target was read from.
	File string `yaml:"-"`
	// SHA256 is the hash of that file, calibration included, 64 hexadecimal digits.
	SHA256 string `yaml:"-"`
}

// Core is a processor.
type Core struct {
	// Name such as "Cortex-M33".
	Name string `yaml:"name,required"`
	// Arch is the instruction set: "armv6-m", "armv8-m", "rv32imac", ...
	Arch string `yaml:"arch"`
	// SIMD is the tier of integer vector instructions: "none", "dsp" (pairs of 16 bits), "mve"
	// (Helium), "pie" (ESP32-S3), "pext" (RISC-V P), "xesppie" (ESP32-P4).
	SIMD string `yaml:"simd,required" enum:"none,dsp,mve,pie,pext,xesppie"`
	// FPU is "none", "single" or "double".
	FPU string `yaml:"fpu" enum:"none,single,double"`
	// Cores is the number of cores, 1 by default. Estimates use one.
	Cores int64 `yaml:"cores"`
	// PeakMACs is the maximum number of int8 multiply-accumulates per cycle that the instructions
	// allow. LoadBytes is the maximum number of bytes loaded per cycle without waiting. 0 if
	// unknown.
	PeakMACs  float64 `yaml:"peak_macs_per_cycle"`
	LoadBytes float64 `yaml:"load_bytes_per_cycle"`
}

// Clock is the processor's clock.
type Clock struct {
	// Min is 0 if unknown.
	Min     Hertz `yaml:"min"`
	Max     Hertz `yaml:"max,required"`
	Default Hertz `yaml:"default,required"`
}

// Memory is one memory of a chip.
type Memory struct {
	Name string `yaml:"name,required"`
	// Role is the use of the memory: "ram" for activations, "flash" for the model and code, "tcm"
	// for tightly coupled RAM, "external-ram", "external-flash".
	Role string `yaml:"role,required" enum:"ram,flash,tcm,external-ram,external-flash"`
	Size Bytes  `yaml:"size,required"`
	// WaitStates of a read at the default clock without cache, absent when unknown.
	WaitStates *int64 `yaml:"wait_states"`
	// Cache in front of it.
	Cache Bytes `yaml:"cache"`
	// ReadCyclesPerByte is the cost of streaming weights, absent when unknown.
	ReadCyclesPerByte *float64 `yaml:"read_cycles_per_byte"`
}

// Supply is the electrical state of the energy figures.
type Supply struct {
	Volts     float64 `yaml:"volts,required"`
	Regulator string  `yaml:"regulator" enum:"switching,linear,unknown"`
}

// Energy is a power model: the energy of an inference is the sum of the parts that are given.
type Energy struct {
	// Reference says what the energy includes: "total" supply or "above-idle".
	Reference string `yaml:"reference,required" enum:"total,above-idle"`
	// Watts is a constant power while an inference runs at the default clock.
	Watts float64 `yaml:"watts"`
	// ElapsedCycle is joules per elapsed processor clock cycle until a layer is done, at any
	// clock. CPUCycle is the additional energy of each cycle in which the processor works, and
	// MAC joules per multiply-accumulate.
	ElapsedCycle float64 `yaml:"elapsed_cycle_j"`
	CPUCycle     float64 `yaml:"cpu_cycle_j"`
	MAC          float64 `yaml:"mac_j"`
	// Band is the interval, as factors, that contains the true value in 90 % of cases.
	Band *[2]float64 `yaml:"band"`
	// Calibration describes the data that the figures were fitted to.
	Calibration *Calibration `yaml:"calibration"`
}

// Accelerator is a unit beside the processor.
type Accelerator struct {
	// Name such as "mvp".
	Name string `yaml:"name,required" enum:"mvp"`
	// Clock of the accelerator, 0 for the processor's.
	Clock Hertz `yaml:"clock"`
	// PeakMACs is the maximum number of multiply-accumulates per cycle, 0 if unknown.
	PeakMACs float64 `yaml:"peak_macs_per_cycle"`
	// Description for display.
	Description string `yaml:"description"`
}

// Calibration describes the source of fitted figures and their error.
type Calibration struct {
	// On lists what was measured: boards, models, sources.
	On []string `yaml:"on"`
	// From names the target or core whose figures were used because the chip itself was not
	// measured; otherwise empty.
	From string `yaml:"from"`
	// Method of fitting and validation in a sentence.
	Method string `yaml:"method"`
	// Rows is the number of measurements, Sources the number of independent ones.
	Rows    int64 `yaml:"rows"`
	Sources int64 `yaml:"sources"`
	// MedianError and P90Error are absolute relative errors of held-out measurements, 0.1 for 10
	// %.
	MedianError *float64 `yaml:"median_error"`
	P90Error    *float64 `yaml:"p90_error"`
	// Unfamiliar is the error of boards that were left out with all their rows, as on a board
	// without measurements; nil if the core was measured on one board alone.
	Unfamiliar *ErrorRow `yaml:"unfamiliar"`
	// Band is the interval, as factors of the estimate, that contains the measured value in the
	// share Coverage of held-out measurements (0.9 by default).
	Band     *[2]float64 `yaml:"band"`
	Coverage *float64    `yaml:"coverage"`
	// Errors is the table of errors by group.
	Errors []ErrorRow `yaml:"errors"`
}

// ErrorRow is one line of an error table.
type ErrorRow struct {
	Group string `yaml:"group,required"`
	// Rows is the number of held-out measurements; the errors of a group without any are taken
	// from similar groups.
	Rows int64 `yaml:"rows,required"`
	// MedianError is omitted if there are no rows.
	MedianError float64 `yaml:"median_error"`
	P90Error    float64 `yaml:"p90_error"`
	Bias        float64 `yaml:"bias"`
}

// Bytes is a size. Files may write it as a number or as "256KiB", "1.5MiB".
type Bytes int64

// Hertz is a frequency. Files may write it as a number or as "78MHz".
type Hertz float64

// RAM returns the size of the largest memory for activations, without external memories; ok is
// false if it is unknown.
func (t *Target) RAM() (size Bytes, ok bool) { return t.largest("ram", "tcm") }

// Flash returns the size of the largest memory that can store a model, without external memories;
// ok is false if it is unknown.
func (t *Target) Flash() (size Bytes, ok bool) { return t.largest("flash") }

// ExternalFlash returns the size of the largest flash outside the chip; ok is false if it is
// absent or unknown.
func (t *Target) ExternalFlash() (size Bytes, ok bool) { return t.largest("external-flash") }

func (t *Target) largest(roles ...string) (size Bytes, ok bool) {
	for i := range t.Memories {
		for _, r := range roles {
			if t.Memories[i].Role == r && t.Memories[i].Size > size {
				size, ok = t.Memories[i].Size, true
			}
		}
	}
	return size, ok
}

// Runtime finds a runtime family by name, the first one for "". It returns nil if it is absent.
func (t *Target) Runtime(name string) *Runtime {
	for i := range t.Runtimes {
		if name == "" || t.Runtimes[i].Name == name {
			return &t.Runtimes[i]
		}
	}
	return nil
}
