//! Options of image generation, and the distance between image sizes.

use super::{FieldLocation, ImageSetting, Losses, Media, Setting, Text};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImageOptions<'a> {
    pub size: Option<ImageSize>,
    pub quality: Option<Text<'a>>,
    /// The kind of file: `png`, `jpeg` or `webp`.
    pub file_format: Option<Text<'a>>,
    pub compression: Option<u64>,
    pub background: Option<Text<'a>>,
    pub moderation: Option<Text<'a>>,
    /// Where the first input image may be changed.
    pub mask: Option<Media<'a>>,
    /// How many partial images a stream sends before the image.
    pub partial_images: Option<u64>,
}

impl ImageOptions<'_> {
    /// Reports all options as dropped, for formats without them.
    pub fn drop_all(&self, losses: &mut Losses) {
        if self.size.is_some() {
            let size = Setting::Image(ImageSetting::Size);
            losses.dropped(FieldLocation::Setting(size));
        }
        self.drop_all_but_size(losses);
    }

    /// Reports all options but the size as dropped.
    pub fn drop_all_but_size(&self, losses: &mut Losses) {
        for (is_set, setting) in [
            (self.quality.is_some(), ImageSetting::Quality),
            (self.file_format.is_some(), ImageSetting::FileFormat),
            (self.compression.is_some(), ImageSetting::Compression),
            (self.background.is_some(), ImageSetting::Background),
            (self.moderation.is_some(), ImageSetting::Moderation),
            (self.partial_images.is_some(), ImageSetting::PartialImages),
        ] {
            if is_set {
                losses.dropped(FieldLocation::Setting(Setting::Image(setting)));
            }
        }
    }
}

/// An image size: pixels in some formats, aspect ratio and scale in others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageSize {
    Pixels {
        width: u32,
        height: u32,
    },
    Shape {
        /// Width to height, as `16:9`.
        ratio: Option<(u32, u32)>,
        scale: Option<Scale>,
    },
}

/// The scale of an image, by the side of a square with as many pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    One,
    Two,
    Four,
}

impl Scale {
    pub const ALL: [Scale; 3] = [Scale::One, Scale::Two, Scale::Four];

    pub const fn side(self) -> u32 {
        match self {
            Scale::One => 1024,
            Scale::Two => 2048,
            Scale::Four => 4096,
        }
    }
}

impl ImageSize {
    /// Parses a size such as `1024x1536`.
    pub fn of_pixels(text: &str) -> Option<ImageSize> {
        let (width, height) = text.split_once(['x', 'X'])?;
        let (width, height) = (width.parse().ok()?, height.parse().ok()?);
        (width > 0 && height > 0).then_some(ImageSize::Pixels { width, height })
    }

    /// Width and height in pixels, where they are known.
    pub const fn pixels(self) -> Option<(u32, u32)> {
        match self {
            ImageSize::Pixels { width, height } => Some((width, height)),
            ImageSize::Shape { .. } => None,
        }
    }

    /// Width and height, or the aspect ratio.
    const fn sides(self) -> (u32, u32) {
        match self {
            ImageSize::Pixels { width, height } => (width, height),
            ImageSize::Shape { ratio: Some(r), .. } => r,
            ImageSize::Shape { ratio: None, .. } => (1, 1),
        }
    }

    /// The side of a square with as many pixels.
    fn side(self) -> f64 {
        match self {
            ImageSize::Pixels { width, height } => (f64::from(width) * f64::from(height)).sqrt(),
            ImageSize::Shape { scale, .. } => f64::from(scale.unwrap_or(Scale::One).side()),
        }
    }

    /// The size with the nearest aspect ratio, then the nearest scale.
    pub fn nearest<T: Copy>(self, among: &[(ImageSize, T)]) -> Option<T> {
        let distance = |other: ImageSize| {
            let shape = (ratio(self.sides()) / ratio(other.sides())).ln().abs();
            let scale = (self.side() / other.side()).ln().abs();
            // Aspect ratios that differ by less than a hundredth count as the same.
            ((shape * 100.0).round(), scale)
        };
        let nearer = |(one, _): &&(ImageSize, T), (other, _): &&(ImageSize, T)| {
            let (one, other) = (distance(*one), distance(*other));
            one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1))
        };
        among.iter().min_by(nearer).map(|(_, found)| *found)
    }

    /// Tells whether both sizes are exactly the same.
    pub fn is_exactly(self, other: ImageSize) -> bool {
        let ((width, height), (w, h)) = (self.sides(), other.sides());
        let shape = u64::from(width) * u64::from(h) == u64::from(w) * u64::from(height);
        shape && (self.side() - other.side()).abs() < 0.5
    }
}

fn ratio((width, height): (u32, u32)) -> f64 {
    f64::from(width) / f64::from(height)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn pixels(width: u32, height: u32) -> ImageSize {
        ImageSize::Pixels { width, height }
    }

    #[test]
    fn the_shape_counts_before_the_scale() {
        let among = [
            (pixels(1024, 1024), 'a'),
            (pixels(2048, 2048), 'b'),
            (pixels(1536, 1024), 'c'),
            (pixels(1024, 1536), 'd'),
        ];
        for (size, found) in [
            (pixels(512, 512), 'a'),
            (pixels(1800, 1800), 'b'),
            (pixels(4096, 2731), 'c'),
            (pixels(9, 16), 'd'),
        ] {
            assert_eq!(size.nearest(&among), Some(found), "{size:?}");
        }
        let none: [(ImageSize, char); 0] = [];
        assert_eq!(pixels(1, 1).nearest(&none), None);
    }

    #[test]
    fn only_the_same_pixels_are_exact() {
        let shape = |ratio, scale| ImageSize::Shape {
            ratio: Some(ratio),
            scale,
        };
        assert!(pixels(1024, 1024).is_exactly(shape((1, 1), None)));
        assert!(pixels(2048, 2048).is_exactly(shape((1, 1), Some(Scale::Two))));
        assert!(!pixels(2048, 2048).is_exactly(shape((1, 1), None)));
        assert!(!pixels(1536, 1024).is_exactly(shape((3, 2), None)));
        assert!(!pixels(1024, 1536).is_exactly(shape((1, 1), None)));
    }

    #[test]
    fn pixels_are_read_as_they_are_written() {
        assert_eq!(ImageSize::of_pixels("1024x1536"), Some(pixels(1024, 1536)));
        for wrong in [
            "",
            "1024",
            "x",
            "0x10",
            "10x0",
            "1024x1536x1",
            "-1x1",
            "auto",
        ] {
            assert_eq!(ImageSize::of_pixels(wrong), None, "{wrong}");
        }
    }
}
