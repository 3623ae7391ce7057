package journal

// WithCodec returns o with a codec for new blocks.
func (o Options) WithCodec(c Codec) Options {
	o.Codec, o.codecSet = c, true
	return o
}
