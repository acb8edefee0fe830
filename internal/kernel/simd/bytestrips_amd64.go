package simd

var byteStrips = family[ByteStrips]{
	VNNI: {
		Set: VNNI,
		lanes: [3][MostByteStrip + 1][2][3]func(t *ByteStrip){
			1: {
				3: {{byteLanes3x64by1VNNI, byteLanes3x32by1VNNI}, {byteCodes3x64by1VNNI, byteCodes3x32by1VNNI}},
				5: {{byteLanes5x64by1VNNI, byteLanes5x32by1VNNI}, {2: byteCodes5x16by1VNNI}},
			},
			2: {
				3: {{byteLanes3x64by2VNNI, byteLanes3x32by2VNNI}, {byteCodes3x64by2VNNI, byteCodes3x32by2VNNI}},
				5: {{byteLanes5x64by2VNNI, byteLanes5x32by2VNNI}, {2: byteCodes5x16by2VNNI}},
			},
		},
		spread: [3][MostByteStrip + 1][3]func(t *ByteStrip){
			1: {
				3: {byteSpread3x1by1VNNI, byteSpread3x2by1VNNI, byteSpread3x4by1VNNI},
				5: {byteSpread5x1by1VNNI, byteSpread5x2by1VNNI, byteSpread5x4by1VNNI},
			},
			2: {
				3: {byteSpread3x1by2VNNI, byteSpread3x2by2VNNI, byteSpread3x4by2VNNI},
				5: {byteSpread5x1by2VNNI, byteSpread5x2by2VNNI, byteSpread5x4by2VNNI},
			},
		},
	},
}

//go:noescape
func byteLanes3x64by1VNNI(t *ByteStrip)

//go:noescape
func byteCodes3x64by1VNNI(t *ByteStrip)

//go:noescape
func byteLanes3x32by1VNNI(t *ByteStrip)

//go:noescape
func byteCodes3x32by1VNNI(t *ByteStrip)

//go:noescape
func byteLanes5x64by1VNNI(t *ByteStrip)

//go:noescape
func byteLanes5x32by1VNNI(t *ByteStrip)

//go:noescape
func byteCodes5x16by1VNNI(t *ByteStrip)

//go:noescape
func byteLanes3x64by2VNNI(t *ByteStrip)

//go:noescape
func byteCodes3x64by2VNNI(t *ByteStrip)

//go:noescape
func byteLanes3x32by2VNNI(t *ByteStrip)

//go:noescape
func byteCodes3x32by2VNNI(t *ByteStrip)

//go:noescape
func byteLanes5x64by2VNNI(t *ByteStrip)

//go:noescape
func byteLanes5x32by2VNNI(t *ByteStrip)

//go:noescape
func byteCodes5x16by2VNNI(t *ByteStrip)

//go:noescape
func byteSpread3x1by1VNNI(t *ByteStrip)

//go:noescape
func byteSpread3x2by1VNNI(t *ByteStrip)

//go:noescape
func byteSpread3x4by1VNNI(t *ByteStrip)

//go:noescape
func byteSpread5x1by1VNNI(t *ByteStrip)

//go:noescape
func byteSpread5x2by1VNNI(t *ByteStrip)

//go:noescape
func byteSpread5x4by1VNNI(t *ByteStrip)

//go:noescape
func byteSpread3x1by2VNNI(t *ByteStrip)

//go:noescape
func byteSpread3x2by2VNNI(t *ByteStrip)

//go:noescape
func byteSpread3x4by2VNNI(t *ByteStrip)

//go:noescape
func byteSpread5x1by2VNNI(t *ByteStrip)

//go:noescape
func byteSpread5x2by2VNNI(t *ByteStrip)

//go:noescape
func byteSpread5x4by2VNNI(t *ByteStrip)
