//! Enums that list what they can be.

/// Declares an enum without data, and `ALL`, the list of its variants in their order: one that is missing there cannot be written.
macro_rules! listed {
    ($(#[$attribute:meta])* pub enum $name:ident { $($(#[$doc:meta])* $variant:ident,)* }) => {
        $(#[$attribute])*
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            pub const ALL: [Self; [$(Self::$variant),*].len()] = [$(Self::$variant),*];
        }
    };
}

pub(super) use listed;
