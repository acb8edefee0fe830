package study

import (
	"github.com/opmeter/opmeter/internal/estimate/chip"
)

// chip is what is known about a target apart from what is fitted.
type chipFacts struct {
	chip.Target
	// core as measurements name it, and the names of measured chips for energy.
	core    string
	chips   []string
	volts   float64 // supply of the energy rows that count, 0 for any
	st      bool    // X-CUBE-AI runs on it
	watts   float64 // vendor's figure per hertz where no inference was measured
	clockHz float64 // of the energy rows, 0 for any
}

func kib(n int64) chip.Bytes { return chip.Bytes(n << 10) }
func mib(n int64) chip.Bytes { return chip.Bytes(n << 20) }

// mhz makes a range of clocks; lo is 0 where the data sheet's least clock depends on
// the oscillator that is chosen.
func mhz(lo, hi, def float64) chip.Clock {
	return chip.Clock{Min: chip.Hertz(lo * 1e6), Max: chip.Hertz(hi * 1e6), Default: chip.Hertz(def * 1e6)}
}

func core(name, arch, simd, fpu string, cores int64) chip.Core {
	p := peaks[name]
	return chip.Core{Name: name, Arch: arch, SIMD: simd, FPU: fpu, Cores: cores, PeakMACs: p.macs, LoadBytes: p.bytes}
}

// peaks holds what instructions allow in a cycle: SMLAD multiplies two pairs of 16
// bits, VMLADAV sixteen pairs of 8 bits in two cycles, MLA of the Cortex-M3 takes two
// cycles; loads are of one word, of two on the Cortex-M7 and with Helium, and take two
// cycles on the Cortex-M0+, whose multiplier has 1 or 32 cycles by choice of the maker.
var peaks = map[string]struct{ macs, bytes float64 }{
	"Cortex-M0+": {0, 2},
	"Cortex-M3":  {0.5, 4},
	"Cortex-M4":  {2, 4},
	"Cortex-M33": {2, 4},
	"Cortex-M7":  {2, 8},
	"Cortex-M55": {8, 8},
	"Xtensa LX7": {16, 16},
}

func mem(name, role string, size chip.Bytes) chip.Memory {
	return chip.Memory{Name: name, Role: role, Size: size}
}

// waits is a memory with wait states and a cache.
func waits(name, role string, size chip.Bytes, states int64, cache chip.Bytes) chip.Memory {
	m := chip.Memory{Name: name, Role: role, Size: size, Cache: cache}
	if states > 0 {
		m.WaitStates = &states
	}
	return m
}

// serial is flash behind a serial bus with a cache.
func serial(size, cache chip.Bytes, cyclesPerByte float64) chip.Memory {
	m := chip.Memory{Name: "QSPI flash", Role: "external-flash", Size: size, Cache: cache}
	if cyclesPerByte > 0 {
		m.ReadCyclesPerByte = &cyclesPerByte
	}
	return m
}

var (
	m0plus = core("Cortex-M0+", "armv6-m", "none", "none", 1)
	m3     = core("Cortex-M3", "armv7-m", "none", "none", 1)
	m4     = core("Cortex-M4", "armv7e-m", "dsp", "single", 1)
	m7     = core("Cortex-M7", "armv7e-m", "dsp", "double", 1)
	m33    = core("Cortex-M33", "armv8-m", "dsp", "single", 1)
	m55    = core("Cortex-M55", "armv8.1-m", "mve", "double", 1)
	m85    = core("Cortex-M85", "armv8.1-m", "mve", "double", 1)
)

// chips lists the shipped targets but those with an accelerator. Sizes and clocks
// are those of the data sheets for the largest variant.
func chips() []chipFacts {
	return []chipFacts{
		{core: "cortex-m4", st: true, chips: []string{"STM32L4R5ZI"}, volts: 1.8, Target: chip.Target{
			ID: "stm32l4r5", Name: "STM32L4R5", Vendor: "STMicroelectronics",
			Description: "Low-power microcontroller with flash accelerator.", Core: m4, Clock: mhz(0, 120, 120),
			Memories: []chip.Memory{mem("SRAM", "ram", kib(640)), waits("flash", "flash", mib(2), 5, 0)},
			Supply:   &chip.Supply{Volts: 1.8, Regulator: "linear"},
		}},
		{core: "cortex-m33", st: true, chips: []string{"STM32U575ZI", "STM32U585AI"}, volts: 1.8, Target: chip.Target{
			ID: "stm32u575", Name: "STM32U575", Vendor: "STMicroelectronics",
			Description: "Ultra-low-power microcontroller with instruction cache.", Core: m33, Clock: mhz(0, 160, 160),
			Memories: []chip.Memory{mem("SRAM", "ram", kib(768)), waits("flash", "flash", mib(2), 4, kib(8))},
			Supply:   &chip.Supply{Volts: 1.8, Regulator: "switching"},
		}},
		{core: "cortex-m33", st: true, chips: []string{"STM32U385RG"}, volts: 1.8, Target: chip.Target{
			ID: "stm32u385", Name: "STM32U385", Vendor: "STMicroelectronics",
			Description: "Ultra-low-power microcontroller that runs near the threshold voltage; its signal processor takes no part.", Core: m33, Clock: mhz(0, 96, 96),
			Memories: []chip.Memory{mem("SRAM", "ram", kib(256)), waits("flash", "flash", mib(1), 0, kib(8))},
			Supply:   &chip.Supply{Volts: 1.8, Regulator: "switching"},
		}},
		{core: "cortex-m7", st: true, chips: []string{"STM32H7A3ZI"}, volts: 3, Target: chip.Target{
			ID: "stm32h7a3", Name: "STM32H7A3", Vendor: "STMicroelectronics",
			Description: "High-performance microcontroller with 16 KiB instruction and data caches.", Core: m7, Clock: mhz(0, 280, 280),
			Memories: []chip.Memory{mem("AXI SRAM", "ram", kib(1024)), mem("DTCM", "tcm", kib(128)), waits("flash", "flash", mib(2), 6, kib(16))},
			Supply:   &chip.Supply{Volts: 3, Regulator: "switching"},
		}},
		{core: "cortex-m7", st: true, chips: []string{"STM32H747XI", "STM32H743ZI"}, Target: chip.Target{
			ID: "stm32h743", Name: "STM32H743", Vendor: "STMicroelectronics",
			Description: "High-performance microcontroller; the H747 has the same core and memories.", Core: m7, Clock: mhz(0, 480, 480),
			Memories: []chip.Memory{mem("AXI SRAM", "ram", kib(512)), mem("DTCM", "tcm", kib(128)), waits("flash", "flash", mib(2), 4, kib(16))},
		}},
		{core: "cortex-m7", st: true, chips: []string{"STM32F746ZG"}, Target: chip.Target{
			ID: "stm32f746", Name: "STM32F746", Vendor: "STMicroelectronics",
			Description: "Microcontroller with 4 KiB instruction and data caches.", Core: core("Cortex-M7", "armv7e-m", "dsp", "single", 1), Clock: mhz(0, 216, 216),
			Memories: []chip.Memory{mem("SRAM", "ram", kib(256)), mem("DTCM", "tcm", kib(64)), waits("flash", "flash", mib(1), 7, kib(4))},
		}},
		{core: "cortex-m4", chips: []string{"nRF52840"}, watts: 156e-12, Target: chip.Target{
			ID: "nrf52840", Name: "nRF52840", Vendor: "Nordic Semiconductor",
			Description: "Radio microcontroller.", Core: m4, Clock: mhz(64, 64, 64),
			Memories: []chip.Memory{mem("RAM", "ram", kib(256)), mem("flash", "flash", mib(1))},
			Supply:   &chip.Supply{Volts: 3, Regulator: "switching"},
		}},
		{core: "cortex-m33", Target: chip.Target{
			ID: "nrf5340", Name: "nRF5340 application core", Vendor: "Nordic Semiconductor",
			Description: "Radio microcontroller; the application core.", Core: m33, Clock: mhz(64, 128, 128),
			Memories: []chip.Memory{mem("RAM", "ram", kib(512)), waits("flash", "flash", mib(1), 0, kib(8))},
		}},
		{core: "cortex-m0plus", chips: []string{"RP2040"}, Target: chip.Target{
			ID: "rp2040", Name: "RP2040", Vendor: "Raspberry Pi",
			Description: "Two cores; code and model in serial flash behind a 16 KiB cache, of the size on the Pico board.", Core: core("Cortex-M0+", "armv6-m", "none", "none", 2), Clock: mhz(0, 133, 133),
			// A line of 8 bytes takes 28 clocks of the quad bus (address, mode, 4 waits, data), which
			// the Pico's boot code runs at half of the processor's clock.
			Memories: []chip.Memory{mem("SRAM", "ram", kib(264)), serial(mib(2), kib(16), 7)},
		}},
		{core: "cortex-m33", Target: chip.Target{
			ID: "rp2350", Name: "RP2350", Vendor: "Raspberry Pi",
			Description: "Two cores; code and model in serial flash behind a 16 KiB cache, of the size on the Pico 2 board.", Core: core("Cortex-M33", "armv8-m", "dsp", "single", 2), Clock: mhz(0, 150, 150),
			Memories: []chip.Memory{mem("SRAM", "ram", kib(520)), serial(mib(4), kib(16), 30)},
		}},
		{core: "cortex-m33", chips: []string{"R7FA6M4"}, volts: 3, Target: chip.Target{
			ID: "ra6m4", Name: "RA6M4", Vendor: "Renesas",
			Description: "Microcontroller with a cache for code flash.", Core: m33, Clock: mhz(0, 200, 200),
			Memories: []chip.Memory{mem("SRAM", "ram", kib(256)), mem("flash", "flash", mib(1))},
			Supply:   &chip.Supply{Volts: 3, Regulator: "linear"},
		}},
		{core: "cortex-m85", chips: []string{"R7FA8D1"}, Target: chip.Target{
			ID: "ra8d1", Name: "RA8D1", Vendor: "Renesas",
			Description: "Microcontroller with Helium vector instructions.", Core: m85, Clock: mhz(0, 480, 480),
			Memories: []chip.Memory{mem("SRAM", "ram", kib(896)), mem("DTCM", "tcm", kib(64)), waits("flash", "flash", mib(2), 0, kib(16))},
		}},
		{core: "cortex-m55", chips: []string{"Apollo510"}, clockHz: 250e6, Target: chip.Target{
			ID: "apollo510", Name: "Apollo510", Vendor: "Ambiq",
			Description: "Microcontroller with Helium vector instructions. Figures hold for weights and activations in tightly coupled memory.", Core: m55, Clock: mhz(96, 250, 250),
			Memories: []chip.Memory{mem("SSRAM", "ram", mib(3)), mem("DTCM", "tcm", kib(512)), mem("MRAM", "flash", mib(4))},
		}},
		{core: "rxv2", chips: []string{"R5F565N"}, Target: chip.Target{
			ID: "rx65n", Name: "RX65N", Vendor: "Renesas",
			Description: "Microcontroller with RXv2 core; kernels are CMSIS-NN adapted to its multiply-accumulate instructions.", Core: core("RXv2", "rxv2", "dsp", "single", 1), Clock: mhz(0, 120, 120),
			Memories: []chip.Memory{mem("SRAM", "ram", kib(640)), mem("flash", "flash", mib(2))},
		}},
		{core: "xtensa-lx7", chips: []string{"ESP32-S3"}, Target: chip.Target{
			ID: "esp32-s3", Name: "ESP32-S3", Vendor: "Espressif",
			Description: "Two Xtensa LX7 cores with vector extension; sizes outside the chip are those of common modules.", Core: core("Xtensa LX7", "xtensa", "pie", "single", 2), Clock: mhz(0, 240, 240),
			Memories: []chip.Memory{mem("SRAM", "ram", kib(512)), mem("PSRAM", "external-ram", mib(8)), serial(mib(8), 0, 0)},
		}},
		{core: "rv32imc", chips: []string{"ESP32-C3"}, Target: chip.Target{
			ID: "esp32-c3", Name: "ESP32-C3", Vendor: "Espressif",
			Description: "RISC-V microcontroller without vector instructions; sizes outside the chip are those of common modules.", Core: core("RV32IMC", "rv32imc", "none", "none", 1), Clock: mhz(0, 160, 160),
			Memories: []chip.Memory{mem("SRAM", "ram", kib(400)), serial(mib(4), kib(16), 0)},
		}},
		{core: "rv32-p4", chips: []string{"ESP32-P4"}, Target: chip.Target{
			ID: "esp32-p4", Name: "ESP32-P4", Vendor: "Espressif",
			Description: "Two RISC-V cores with vector extension; sizes outside the chip are those of common modules.", Core: core("RV32IMAFC", "rv32imafc", "xesppie", "single", 2), Clock: mhz(0, 400, 360),
			Memories: []chip.Memory{mem("L2MEM", "ram", kib(768)), mem("PSRAM", "external-ram", mib(32)), serial(mib(16), 0, 0)},
		}},
		{core: "xtensa-lx6", chips: []string{"ESP32"}, Target: chip.Target{
			ID: "esp32", Name: "ESP32", Vendor: "Espressif",
			Description: "Two Xtensa LX6 cores; sizes outside the chip are those of common modules.", Core: core("Xtensa LX6", "xtensa", "none", "single", 2), Clock: mhz(0, 240, 240),
			Memories: []chip.Memory{mem("SRAM", "ram", kib(520)), serial(mib(4), kib(32), 0)},
		}},
		{core: "cortex-m4", st: true, chips: []string{"STM32F429ZI"}, Target: chip.Target{
			ID: "stm32f429", Name: "STM32F429", Vendor: "STMicroelectronics",
			Description: "Microcontroller with flash accelerator; figures hold at 180 MHz with five wait states.", Core: m4, Clock: mhz(0, 180, 180),
			Memories: []chip.Memory{mem("SRAM", "ram", kib(192)), mem("CCM", "tcm", kib(64)), waits("flash", "flash", mib(2), 5, 0)},
		}},
		{core: "cortex-m33", chips: []string{"MCXN947"}, Target: chip.Target{
			ID: "mcxn947", Name: "MCXN947", Vendor: "NXP",
			Description: "Two cores with a cache for code; the neural processing unit takes no part.", Core: core("Cortex-M33", "armv8-m", "dsp", "single", 2), Clock: mhz(0, 150, 150),
			Memories: []chip.Memory{mem("SRAM", "ram", kib(512)), waits("flash", "flash", mib(2), 0, kib(16))},
		}},
		{core: "cortex-m7", chips: []string{"i.MX RT1062"}, Target: chip.Target{
			ID: "imxrt1062", Name: "i.MX RT1062", Vendor: "NXP",
			Description: "Microcontroller of the Teensy 4; floating point was measured with code and data in tightly coupled memory. Flash is of the size on the Teensy 4.0.", Core: m7, Clock: mhz(0, 600, 600),
			Memories: []chip.Memory{mem("OCRAM", "ram", kib(512)), mem("FlexRAM", "tcm", kib(512)), serial(mib(2), kib(32), 0)},
		}},
		{core: "cortex-m7", Target: chip.Target{
			ID: "samv71", Name: "SAMV71", Vendor: "Microchip",
			Description: "Microcontroller with 16 KiB instruction and data caches.", Core: m7, Clock: mhz(0, 300, 300),
			Memories: []chip.Memory{mem("SRAM", "ram", kib(384)), waits("flash", "flash", mib(2), 6, kib(16))},
		}},
		{core: "cortex-m4", chips: []string{"SAMD51"}, Target: chip.Target{
			ID: "samd51", Name: "SAMD51", Vendor: "Microchip",
			Description: "Microcontroller with a 4 KiB cache. Floating point was measured at 200 MHz, beyond the data sheet.", Core: m4, Clock: mhz(0, 200, 120),
			Memories: []chip.Memory{mem("SRAM", "ram", kib(256)), waits("flash", "flash", mib(1), 5, kib(4))},
		}},
		{core: "cortex-m0plus", Target: chip.Target{
			ID: "samd21", Name: "SAMD21", Vendor: "Microchip",
			Description: "Low-power microcontroller.", Core: m0plus, Clock: mhz(0, 48, 48),
			Memories: []chip.Memory{mem("SRAM", "ram", kib(32)), waits("flash", "flash", kib(256), 1, 0)},
		}},
		{core: "cortex-m55", chips: []string{"STM32N657"}, Target: chip.Target{
			ID: "stm32n657", Name: "STM32N657", Vendor: "STMicroelectronics",
			Description: "Microcontroller with Helium vector instructions and 32 KiB caches; the neural processing unit takes no part. Figures hold with caches on.", Core: m55, Clock: mhz(0, 800, 600),
			Memories: []chip.Memory{mem("AXI SRAM", "ram", kib(4300)), mem("DTCM", "tcm", kib(128))},
		}},
		generic("cortex-m0plus", m0plus, 48),
		generic("cortex-m3", m3, 72),
		generic("cortex-m4", m4, 100),
		generic("cortex-m7", m7, 400),
		generic("cortex-m33", m33, 128),
		generic("cortex-m55", m55, 250),
		generic("cortex-m85", m85, 480),
		{core: "rv32imac", Target: chip.Target{
			ID: "rv32", Name: "RV32IMAC", Description: "Generic RISC-V core without vector instructions.",
			Core: core("RV32IMAC", "rv32imac", "none", "none", 1), Clock: mhz(0, 400, 100),
		}},
	}
}

func generic(id string, c chip.Core, clock float64) chipFacts {
	return chipFacts{
		core: id, st: id == "cortex-m4" || id == "cortex-m7" || id == "cortex-m33",
		Target: chip.Target{ID: id, Name: c.Name, Description: "Generic core with memory that it need not wait for.", Core: c, Clock: mhz(0, 1000, clock)},
	}
}
