package dataset

// Preset says how an encoded image becomes the input of a net: decode, resize
// (Pillow's antialiased filters on 8-bit values), centre crop, divide by 255,
// subtract Mean, divide by Std. For arrays and tables only Scale, Mean and Std
// apply.
type Preset struct {
	ID string `yaml:"id,omitempty" json:"id"`
	// Resize is "none", "shorter" (the shorter side becomes Height) or
	// "squash" (Height x Width whatever the proportions).
	Resize string `yaml:"resize" json:"resize"`
	Height int    `yaml:"height,omitempty" json:"height,omitempty"`
	Width  int    `yaml:"width,omitempty" json:"width,omitempty"`
	// Interpolation is "bilinear" (default) or "bicubic".
	Interpolation string `yaml:"interpolation,omitempty" json:"interpolation,omitempty"`
	// CropHeight and CropWidth, in pixels; 0: no crop.
	CropHeight int `yaml:"cropHeight,omitempty" json:"cropHeight,omitempty"`
	CropWidth  int `yaml:"cropWidth,omitempty" json:"cropWidth,omitempty"`
	// Channels is 3 (RGB) or 1 (grey).
	Channels int `yaml:"channels,omitempty" json:"channels,omitempty"`
	// Scale divides raw values before Mean and Std: 255 for 8-bit images
	// (always, for encoded images), 16 for the digits, 1 for tables.
	Scale float64   `yaml:"scale,omitempty" json:"scale,omitempty"`
	Mean  []float64 `yaml:"mean,omitempty" json:"mean,omitempty"`
	Std   []float64 `yaml:"std,omitempty" json:"std,omitempty"`
	// Summary is one line for `assay list presets`.
	Summary string `yaml:"-" json:"summary,omitempty"`
}
